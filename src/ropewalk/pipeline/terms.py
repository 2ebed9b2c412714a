"""What a planner is asked for: a batch, a memory, and what it may use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ropewalk.errors import Findings, StrategyError
from ropewalk.pipeline.schedules import searched
from ropewalk.timetable.named import TIMETABLES

ADAM_IN_FLOAT32 = 4.0
"""Bytes held for each byte of weights: weights, gradients and two moments, all of 32 bits."""


@dataclass(frozen=True)
class Terms:
    """A global batch and the freedom that the planner has to run it."""

    global_batch: int
    """Samples of a step."""
    micro_batch: int
    """Samples of the smallest micro-batch; multiples of it are tried where they divide the global batch."""
    memory_bytes: float | None = None
    """Of a GPU; without it nothing is ever too large."""
    state_multiple: float = ADAM_IN_FLOAT32
    """Bytes of weights, gradients and optimiser for each byte of weights."""
    schedules: tuple[str, ...] = field(default_factory=searched)
    tensor: tuple[int, ...] = (1,)
    """How many GPUs may share the samples of a replica; 1 must be among them."""
    recompute: tuple[bool, ...] = (False,)
    """May, or must, activations be computed again instead of kept? Both: whichever is faster and fits."""
    whole_samples: bool = True
    """Does a replica get whole samples, as many as the fullest one gets? Otherwise equal parts, however small, which
    is how the literature counts."""
    overlap_sums: bool = True
    """Are gradients of a stage added up while the last micro-batch still runs back through it? Otherwise behind it."""
    weight_share: float = 0.5
    """The part of a measured backward pass that makes gradients of weights, where a timetable puts them off and there
    are weights. Models that are priced know it themselves."""
    larger_micro_batches: bool = True
    """Are multiples of `micro_batch` tried?"""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "pipeline")
        if self.global_batch < 1 or self.micro_batch < 1:
            findings.add(
                f"a global batch of {self.global_batch} in micro-batches of {self.micro_batch}: give 1 or more"
            )
        elif self.global_batch % self.micro_batch:
            findings.add(
                f"a global batch of {self.global_batch} samples is not a multiple of micro-batches of "
                f"{self.micro_batch}: give a micro-batch that divides it"
            )
        if self.memory_bytes is not None and not self.memory_bytes > 0:
            findings.add(f"GPUs have {self.memory_bytes} bytes of memory: give a positive number")
        if not self.state_multiple >= 1:
            findings.add(f"{self.state_multiple} bytes are held for each byte of weights: give 1 or more")
        if not 0 <= self.weight_share < 1:
            findings.add(f"weights take {self.weight_share} of a backward pass: give a fraction such as 0.9")
        for name in self.schedules:
            if name not in TIMETABLES:
                findings.add(TIMETABLES.unknown(name))
        if not self.schedules:
            findings.add("no schedule is allowed: give at least one")
        if 1 not in self.tensor or min(self.tensor, default=0) < 1:
            findings.add(f"tensor degrees are {self.tensor}: give positive ones, with 1 among them")
        if not self.recompute:
            findings.add("activations are neither kept nor recomputed: allow one of the two")
        findings.raise_if_any()

    def micro_batch_sizes(self) -> Iterator[int]:
        """The sizes to try, smallest first, up to the whole batch at once."""
        most = self.global_batch // self.micro_batch
        for times in range(1, (most if self.larger_micro_batches else 1) + 1):
            if most % times == 0:
                yield times * self.micro_batch
