"""Who adds up what a reduction brings together, where, and how fast.

Adding is work: a rank reads what has arrived and what it has, and writes the sum. GPUs add many times faster than
networks bring bytes, CPUs may not, and switches that reduce on the way (SHARP, NVLS) take the work off the ranks
altogether. Only what is added counts: the rounds of an all-gather overwrite, and a mixer has nothing to do in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from ropewalk.errors import ProgramError, UnitError
from ropewalk.units import bandwidth, show_size


class MixPlace(StrEnum):
    """Where reductions are added up."""

    GPU = "gpu"
    """By a kernel on the GPU of each rank, beside its products."""
    CPU = "cpu"
    """By the host of each rank, as Gloo and parameter servers do."""
    NETWORK = "network"
    """By switches on the way: ranks send once and receive the sum."""


@dataclass(frozen=True)
class Mixer:
    """An adder: `rate` bytes of what arrives are added to what is there in a second.

    >>> Mixer(5e9).seconds(1e9)
    0.2
    >>> str(mixer_named("cpu:5GB/s"))
    'cpu:5 GB/s'
    """

    rate: float = math.inf
    """Bytes/s of one operand; infinite: adding takes no time."""
    place: MixPlace = MixPlace.GPU
    payload: float = 1.0
    """Part of what arrives that is added: headers, where a level counts them in the bytes of a transfer, are not."""

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ProgramError(f"reduction at {self.rate:g} bytes/s never ends: give a rate above 0, such as 5GB/s")

    @property
    def free(self) -> bool:
        """Does adding take no time?"""
        return math.isinf(self.rate)

    @property
    def arriving(self) -> float:
        """Bytes/s, headers and all, with which it keeps up."""
        return self.rate / self.payload

    def seconds(self, added_bytes: float) -> float:
        """How long so many bytes keep the adder busy."""
        return added_bytes / self.rate

    def __str__(self) -> str:
        return "free" if self.free else f"{self.place}:{show_size(self.rate)}/s"


FREE = Mixer()
"""Adding takes no time: what a link measured with its reductions already includes."""


def mixer_named(text: str) -> Mixer:
    """What people write: `5GB/s`, or with the place in front `cpu:5GB/s`; `free` takes no time.

    >>> mixer_named("5GB/s") == Mixer(5e9), mixer_named("free") == FREE
    (True, True)
    """
    if text.strip() == "free":
        return FREE
    place, colon, rate = text.rpartition(":")
    if colon and place not in list(MixPlace):
        raise ProgramError(
            f"reduction does not run on {place!r}: write {', '.join(MixPlace)} before the rate, as in cpu:5GB/s"
        )
    try:
        return Mixer(bandwidth(rate), MixPlace(place) if colon else MixPlace.GPU)
    except UnitError as error:
        raise ProgramError(
            f"{text[:40]!r} is not a reduction rate: write it like 5GB/s, with the place like cpu:5GB/s, or free"
        ) from error
