"""What a reader finds: a benchmark, a size, a time, and who took part in the words of the file."""

from __future__ import annotations

from dataclasses import dataclass

Place = tuple[str, int] | int | str
"""A GPU: the name of a server and the number of the GPU in it, the number of a rank, or the name of a GPU."""
Who = tuple[tuple[Place, ...], ...]
"""Communicators that ran at the same time; none where all GPUs of the cluster are meant."""


@dataclass(frozen=True)
class Record:
    """One measurement."""

    benchmark: str
    size_bytes: int
    seconds: float
    who: Who
    source: str
    """File, and line where there is one."""
    ranks: int | None = None
    """How many take part, where the file says so beside who they are."""
    wrong: int = 0
    """Values that came out wrong, where the tool checks them."""


@dataclass(frozen=True)
class SourceFile:
    """A file that is read, and what was said about it."""

    name: str
    text: str
    benchmark: str | None = None
    """What it is of, where it does not say so itself."""
