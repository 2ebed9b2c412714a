"""Ctrl-C that lands in compiled code.

Where an interrupt arrives while a kernel's arguments are being read, Python wraps it: "returned a result with an
exception set" is a SystemError whose cause is the interrupt. Whoever waits for interrupts wants the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unwrapped_interrupts() -> Iterator[None]:
    """Raise an interrupt as such, also where a kernel was about to run.

    >>> try:
    ...     with unwrapped_interrupts():
    ...         raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    interrupted
    """
    try:
        yield
    except SystemError as problem:
        if isinstance(problem.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from problem
        raise
