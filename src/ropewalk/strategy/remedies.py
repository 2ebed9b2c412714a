"""What makes a step fit in the memory of its GPUs: every remedy is tried before it is named.

Trying means asking for the memory of the changed strategy on the same GPUs and for the same batch. Kinds of remedies
are tried from the mildest change on, each on its own; where none is enough alone, the strongest are tried together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ropewalk.errors import InputError, MemoryShortage
from ropewalk.strategy.checks import check
from ropewalk.strategy.memory import Memory, memory
from ropewalk.strategy.prices import KeptPrices
from ropewalk.strategy.shares import shares_of
from ropewalk.strategy.stages import cut
from ropewalk.strategy.strategy import Strategy
from ropewalk.workload.workload import Workload

Remedy = tuple[str, Strategy]


@dataclass(frozen=True, eq=False)
class Remedies:
    """A strategy whose step does not fit, and what it is priced by."""

    workload: Workload
    strategy: Strategy
    prices: KeptPrices
    capacity_bytes: float

    def shortage(self, needed: Memory, gpu: str) -> MemoryShortage:
        """The error: the fullest stage, and the remedies that work or the one that came nearest."""
        total = needed.total
        stage, others = int(total.argmax()), int((total > self.capacity_bytes).sum()) - 1
        also = f" ({others} other{'s' if others > 1 else ''} exceed it as well)" if others else ""
        fact = (
            f"memory: stage {stage} needs {total[stage] / 1e9:.1f} GB on gpu {gpu}, which has "
            f"{self.capacity_bytes / 1e9:g} GB{also}"
        )
        return MemoryShortage(f"{fact}: {self._advice()}", float(total[stage]))

    def _advice(self) -> str:
        tried: list[tuple[float, str]] = []
        working = [one for one in (self._first(kind, tried) for kind in self._alone()) if one]
        if not working:
            working = [one for one in (self._first(self._together(), tried),) if one]
        if working:
            return f"use {', or '.join(working)}"
        hint = "no tried remedy makes it fit"
        if tried:
            needed, remedy = min(tried)
            hint += f"; the closest was {remedy} ({needed / 1e9:.1f} GB)"
        return f"{hint}: use more GPUs or a smaller model"

    def _first(self, remedies: Iterator[Remedy], tried: list[tuple[float, str]]) -> str | None:
        """The first that works; what does not work is noted."""
        for words, strategy in remedies:
            needed = self._needed(strategy)
            if needed is None:
                continue
            if needed <= self.capacity_bytes:
                return words
            tried.append((needed, words))
        return None

    def _needed(self, strategy: Strategy) -> float | None:
        """Bytes of the fullest GPU; None where the strategy does not suit the model or the GPUs."""
        try:
            sized = self.workload.batch == strategy.micro_batch
            workload = self.workload if sized else self.workload.at_batch(strategy.micro_batch)
            check(strategy, workload, self.strategy.ranks)
            shares = shares_of(workload, strategy)
            pieces = cut(workload, strategy, shares, self.prices)
            return memory(strategy, shares, pieces, self.prices.numbers).most
        except InputError:
            return None

    def _alone(self) -> Iterator[Iterator[Remedy]]:
        yield self._recomputed(self.strategy)
        yield self._sharded(self.strategy)
        yield self._smaller(self.strategy)
        if not self.strategy.parts:
            yield self._deeper("tensor", "--tp")
            yield self._deeper("pipeline", "--pp")

    def _together(self) -> Iterator[Remedy]:
        """Full recomputation with the highest ZeRO stage, with ever more tensor and pipeline parallelism."""
        degrees: list[Remedy] = [("", self.strategy)]
        if not self.strategy.parts:
            degrees += [*self._deeper("tensor", "--tp"), *self._deeper("pipeline", "--pp")]
        for words, strategy in degrees:
            start = f"{words} " if words else ""
            yield f"{start}--recompute full", replace(strategy, recompute="full")
            for zero in range(strategy.zero + 1, 4):
                yield f"{start}--recompute full --zero {zero}", replace(strategy, recompute="full", zero=zero)

    def _recomputed(self, strategy: Strategy) -> Iterator[Remedy]:
        modes = {"none": ("selective", "full"), "full": (), "stage": ()}.get(strategy.recompute, ("full",))
        for mode in modes:
            yield f"--recompute {mode}", replace(strategy, recompute=mode)

    def _sharded(self, strategy: Strategy) -> Iterator[Remedy]:
        for zero in range(strategy.zero + 1, 4):
            yield f"--zero {zero}", replace(strategy, zero=zero)

    def _smaller(self, strategy: Strategy) -> Iterator[Remedy]:
        """Half of a micro-batch, twice as many of them, and so on."""
        samples, count = strategy.micro_batch, strategy.micro_batches
        while samples % 2 == 0 and not strategy.rows:
            samples, count = samples // 2, count * 2
            yield f"--micro-batch {samples}", replace(strategy, micro_batch=samples, micro_batches=count)

    def _deeper(self, degree: str, option: str) -> Iterator[Remedy]:
        """Twice the degree for half of the data ranks, and so on; the batch stays, in more micro-batches."""
        strategy = self.strategy
        while strategy.data % 2 == 0 and not strategy.rows:
            wider, data = 2 * int(getattr(strategy, degree)), strategy.data // 2
            changed: dict[str, Any] = {degree: wider, "data": data, "micro_batches": 2 * strategy.micro_batches}
            wide = replace(strategy, stages=None, **changed)
            strategy = replace(wide, expert=min(strategy.expert, wide.expert_ranks))
            fewer = f" --ep {strategy.expert}" if strategy.expert != self.strategy.expert else ""
            yield f"{option} {wider} --dp {data}{fewer} --micro-batch {strategy.micro_batch}", strategy
