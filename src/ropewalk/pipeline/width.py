"""How much a search keeps and times; wide for small instances, narrow where it would take minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.pipeline.costs import Costs


@dataclass(frozen=True)
class Width:
    """Limits of the planner's search."""

    slots: int = 8
    """Suffixes of a pipeline kept for every state and set of GPUs."""
    sets: int = 64
    """GPU sets of every size."""
    replicas: tuple[int, ...] = ()
    """How many replicas a stage may have; any number where empty."""
    groups: int = 128
    """States are taken together until there are no more than so many; cuts move by single states later."""
    timed: int = 64
    """Proposals that the clock times."""
    alike: int = 3
    """Proposals for each size of micro-batches that give stages the same numbers of GPUs, and for each number of stages
    those that are timed in any case."""
    hope: float = 1.25
    """Proposals are not timed where a bound says that they take so much longer than the best so far."""
    leaders: int = 4
    """Plans that are moved about."""
    moves: int = 400
    """Plans timed while one of them is moved about."""
    sizes: int = 8
    """Sizes of micro-batches that are searched; where there are more, those that a coarse search thinks most of."""

    @property
    def coarse(self) -> Width:
        """Enough to tell good sizes of micro-batches from bad ones."""
        return replace(self, slots=2, sets=1, groups=24)

    def restrictions(self, costs: Costs) -> tuple[str, ...]:
        """What this width leaves out, in words."""
        found = [f"{self.slots} partial plans kept per cut and set of GPUs, at most {self.timed} proposals timed"]
        if self.replicas:
            found.append(f"stages have {', '.join(map(str, self.replicas))} replicas")
        if costs.states > self.groups:
            found.append(f"{costs.states} states searched as {self.groups} groups, cuts refined later")
        if len(tuple(costs.terms.micro_batch_sizes())) > self.sizes:
            found.append(f"the {self.sizes} best micro-batch sizes of a coarse search")
        return tuple(found)


FEW_GPUS = 32
SOME_GPUS = 128


def width_for(costs: Costs) -> Width:
    """Wide enough to be sure of good plans in seconds, and to have one for 512 GPUs in a minute or two."""
    gpus = costs.machines.gpus
    if gpus <= FEW_GPUS:
        return Width()
    if gpus <= SOME_GPUS:
        return Width(slots=6, sets=6, replicas=round_counts(gpus, between=True), groups=64, sizes=3)
    return Width(slots=4, sets=2, replicas=round_counts(gpus, gpus // 256), groups=64, timed=32, moves=100, sizes=3)


def round_counts(gpus: int, least: int = 1, *, between: bool = False) -> tuple[int, ...]:
    """Powers of two (and those times three), and all GPUs less one of them: what stages with a small neighbour have.

    >>> round_counts(16)
    (1, 2, 4, 8, 12, 14, 15, 16)
    """
    doubling = {1 << power for power in range(gpus.bit_length())}
    if between:
        doubling |= {3 << power for power in range(gpus.bit_length() - 1)}
    small = {count for count in doubling if least <= count <= gpus}
    return tuple(sorted(small | {gpus - count for count in small if count < gpus} | {gpus}))
