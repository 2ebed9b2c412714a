"""How kernels of the simulators are compiled: once, kept, without the interpreter lock, dividing as IEEE 754 says."""

from __future__ import annotations

from ropewalk.compiled import kernel_ieee as kernel

__all__ = ["kernel"]
