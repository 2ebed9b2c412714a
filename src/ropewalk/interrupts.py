"""Ctrl-C that lands in compiled code.

Where an interrupt arrives while a kernel's arguments are being read, Python wraps it: "returned a result with an
exception set" is a SystemError whose cause is the interrupt, or another SystemError with that cause. Whoever waits for
interrupts wants the first cause.
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
        if isinstance(_first_cause(problem), KeyboardInterrupt):
            raise KeyboardInterrupt from problem
        raise


def _first_cause(problem: BaseException) -> BaseException:
    while isinstance(problem, SystemError) and problem.__cause__ is not None:
        problem = problem.__cause__
    return problem
