"""How kernels are compiled: once, kept on disk, without the interpreter lock, dividing as IEEE 754 says."""

from __future__ import annotations

from numba import njit

kernel = njit(cache=True, nogil=True, error_model="numpy")
