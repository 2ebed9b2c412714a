"""What work takes: forecasts are said and checked before it starts, and a limit of memory holds in any case.

>>> with memory_limited_to(1e9):
...     foresee("a table of all pairs", 4e9, "use fewer hosts")
Traceback (most recent call last):
    ...
ropewalk.errors.InputError: a table of all pairs takes about 4 GB of memory, and 1 GB is allowed: use fewer hosts
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path

from ropewalk.documents.opening import beginning
from ropewalk.errors import InputError
from ropewalk.units import show_roughly, show_size

WORTH_SAYING = 1e9
"""Less memory than this is not said."""
WORTH_SAYING_S = 20.0
"""Less time than this is not said."""
LOWEST_LIMIT = 500e6
"""What the program itself takes, with its compiler and a small answer: a limit below it holds for nothing."""
_LIMIT: ContextVar[float | None] = ContextVar("memory limit", default=None)
_TELL: ContextVar[Callable[[str], None] | None] = ContextVar("who is told of forecasts", default=None)


def allowed_bytes() -> float:
    """What work may take: the limit that was given, or what this machine has left."""
    given = _LIMIT.get()
    return _available() if given is None else given


def foresee(what: str, needed_bytes: float, remedy: str, *, seconds: float = 0.0) -> None:
    """Say what work is about to take, and refuse it where so much memory is not allowed or not there.

    `seconds` are those of one core of an ordinary machine, right to a factor of two or three.
    """
    allowed = allowed_bytes()
    if needed_bytes > allowed:
        there = "allowed" if _LIMIT.get() is not None else "free on this machine"
        raise InputError(
            f"{what} takes about {show_size(needed_bytes)} of memory, and {show_size(allowed)} is {there}: {remedy}"
        )
    tell = _TELL.get()
    if tell is None or (needed_bytes < WORTH_SAYING and seconds < WORTH_SAYING_S):
        return
    long = [show_roughly(seconds)] if seconds >= WORTH_SAYING_S else []
    large = [f"{show_size(float(f'{needed_bytes:.1g}'))} of memory"] if needed_bytes >= WORTH_SAYING else []
    tell(f"{what}: about {' and '.join(long + large)}. To take less, {remedy}")


@contextmanager
def memory_limited_to(limit_bytes: float | None, tell: Callable[[str], None] | None = None) -> Iterator[None]:
    """While the block runs, refuse forecasts beyond the limit, and end what takes more without having foreseen it.

    None: what the machine has. An allocation that fails is said as such, with a remedy. `tell` is told of forecasts
    that are worth waiting for.
    """
    before, told = _LIMIT.set(limit_bytes), _TELL.set(tell)
    try:
        with _held_to(limit_bytes):
            yield
    except MemoryError:
        if limit_bytes is None:
            said = "there is not enough memory on this machine: ask for less, or use a larger machine"
        else:
            said = (
                f"it takes more memory than the {show_size(limit_bytes)} of --memory-limit: raise it, or ask for less"
            )
        raise InputError(said) from None
    finally:
        _LIMIT.reset(before)
        _TELL.reset(told)


@contextmanager
def _held_to(limit_bytes: float | None) -> Iterator[None]:
    """The kernel refuses allocations beyond the limit; systems other than Linux have forecasts alone."""
    if limit_bytes is None or sys.platform != "linux":
        yield
        return
    import resource

    _load_what_takes_memory_of_itself()
    was = resource.getrlimit(resource.RLIMIT_DATA)
    most = int(_status("VmData") + max(0.0, limit_bytes - _status("VmRSS")))
    if was[1] != resource.RLIM_INFINITY:
        most = min(most, was[1])
    resource.setrlimit(resource.RLIMIT_DATA, (most, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, was)


def _load_what_takes_memory_of_itself() -> None:
    """Linear algebra and the compiler: without memory they end the process or wait for ever, and raise nothing."""
    for name in ("scipy.optimize", "numba"):
        import_module(name)


def _status(key: str) -> float:
    return _kilobytes("/proc/self/status", key) * 1024.0


def _available() -> float:
    """Bytes that this machine has left; infinite where it does not say."""
    found = _kilobytes("/proc/meminfo", "MemAvailable")
    return found * 1024.0 if found else float("inf")


def _kilobytes(path: str, key: str) -> int:
    for line in beginning(Path(path), 4000).splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0])
    return 0
