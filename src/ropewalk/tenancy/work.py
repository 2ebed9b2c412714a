"""What a job does in one iteration: it computes, and its ranks exchange bytes, partly hidden behind the computing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ropewalk.errors import ClusterError, Findings


@dataclass(frozen=True)
class JobExchange:
    """One collective of an iteration, run by all groups of ranks at the same time.

    >>> JobExchange("ring", 1e9, overlap_s=0.1).collective
    'ring'
    """

    collective: str
    """What `ropewalk.tenancy.collectives` knows: a collective of the table, an act, or a pattern of pipelines."""
    size_bytes: float
    """The whole vector of an all-reduce, reduce-scatter or gathered all-gather; what one rank sends in all, its own
    part included, in an all-to-all; what one rank sends to its peer in a shift or a pipeline. For all `repeats`."""
    overlap_s: float = 0.0
    """Seconds of the iteration's computing that run beside it: it costs only what it takes beyond them."""
    group: int = 0
    """Ranks of one group; 0: all ranks of the job."""
    stride: int = 1
    """From one member of a group to the next: 1 for tensor parallelism inside a server, the tensor degree for data."""
    groups: tuple[tuple[int, ...], ...] = ()
    """The ranks of every group, where they are not evenly spaced; all groups have the same size."""
    after_s: float = 0.0
    """Seconds of the iteration's computing between the exchange before it and this one; the rest stands at the end."""

    def group_size(self, gpus: int) -> int:
        return len(self.groups[0]) if self.groups else self.group or gpus // self.stride


@dataclass(frozen=True)
class Iteration:
    """One iteration: it takes `compute_s`, and for every exchange what that takes beyond its overlap.

    Exchanges follow each other, as do the rounds of each, with a barrier between rounds.

    >>> Iteration(0.3, (JobExchange("ring", 1e9), JobExchange("all-to-all", 1e8))).scaled(0.5).exchanges[0].size_bytes
    500000000.0
    """

    compute_s: float
    """All computing of an iteration, hidden behind or not."""
    exchanges: tuple[JobExchange, ...] = ()
    busy_s: float | None = None
    """Seconds in which a GPU really computes, mean over GPUs; `compute_s` unless given. Pipelines have bubbles."""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, "work of an iteration")
        if not (math.isfinite(self.compute_s) and self.compute_s >= 0):
            findings.add(f"it computes for {self.compute_s} s: give 0 or more")
        for exchange in self.exchanges:
            what = f"its {exchange.collective}"
            if not (math.isfinite(exchange.size_bytes) and exchange.size_bytes >= 0):
                findings.add(f"{what} moves {exchange.size_bytes} bytes: give 0 or more")
            if not (math.isfinite(exchange.overlap_s) and exchange.overlap_s >= 0):
                findings.add(f"{what} overlaps {exchange.overlap_s} s of computing: give 0 or more")
            if not (math.isfinite(exchange.after_s) and exchange.after_s >= 0):
                findings.add(f"{what} begins {exchange.after_s} s after the one before: give 0 or more")
            if exchange.group < 0 or exchange.group == 1 or exchange.stride < 1:
                findings.add(f"{what} has groups of {exchange.group} at a stride of {exchange.stride}: give 2 at 1")
            if len({len(group) for group in exchange.groups}) > 1 or min(map(len, exchange.groups), default=2) < 2:
                findings.add(f"{what} has groups of different sizes, or of one rank: list equal groups of 2 or more")
        hidden = sum(exchange.overlap_s + exchange.after_s for exchange in self.exchanges)
        if hidden > self.compute_s * (1 + 1e-9):
            findings.add(
                f"its exchanges overlap and follow {hidden:g} s of computing, but there are {self.compute_s:g} s: "
                "give less overlap"
            )
        if not self.compute_s and not any(exchange.size_bytes for exchange in self.exchanges):
            findings.add("it neither computes nor sends: give seconds or bytes")
        findings.raise_if_any()

    @property
    def arithmetic_s(self) -> float:
        """What one GPU computes in an iteration."""
        return self.compute_s if self.busy_s is None else self.busy_s

    def scaled(self, volume: float) -> Iteration:
        """The same with all exchanges `volume` times as large."""
        return replace(
            self, exchanges=tuple(replace(one, size_bytes=one.size_bytes * volume) for one in self.exchanges)
        )

    def without_overlap(self) -> Iteration:
        """The same with every exchange after the computing, as the authors of vClos simulate it."""
        return replace(self, exchanges=tuple(replace(one, overlap_s=0.0) for one in self.exchanges))
