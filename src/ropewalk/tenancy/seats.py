"""Where the ranks of a job sit, as far as contention depends on it: leafs, spines, cores, and the links of flows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import OWN_LEAF, Allocation
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.relays import relayed

LEAF_UP, LEAF_DOWN, SPINE_UP, SPINE_DOWN = range(4)
"""Kinds of links: between leafs and spines, and between spines and cores."""


@dataclass(frozen=True, eq=False)
class Above:
    """What there is above spines, of a job over several pods."""

    core: Ints
    """Core of every rank."""
    pod: Ints
    """Pod of every rank."""
    first_spine: Ints
    """Of every pod; spines at the same place of two pods are one lane."""


@dataclass(frozen=True, eq=False)
class RankSwitches:
    """Leaf and spine of every rank of a job: all that contention depends on with two tiers and no rails."""

    leaf: Ints
    spine: Ints
    above: Above | None = None
    gpus: Ints | None = None
    """The GPU of every rank, where there are rails."""
    rails: int = 1

    @classmethod
    def of(cls, allocation: Allocation, plant: Plant | None = None) -> RankSwitches:
        """Of a job; with three tiers, or on rails, the plant says how leafs and spines belong together."""
        leaf, spine = np.array(allocation.leaf_of_gpu, np.int64), np.array(allocation.spine_of_gpu, np.int64)
        if plant is None:
            if allocation.core_of_gpu:
                raise ClusterError(f"job {allocation.job} sends over cores: say on which plant")
            return cls(leaf, spine)
        above = None
        if allocation.core_of_gpu:
            core = np.array(allocation.core_of_gpu, np.int64)
            above = Above(core, plant.tiers.pod_of_leaf[leaf], plant.tiers.first_spine)
        return cls(leaf, spine, above, allocation.columns.gpus, plant.rails)

    @classmethod
    def of_split(cls, *sizes: int) -> RankSwitches:
        """So many ranks on each leaf, rank order leaf by leaf, the i-th on spine i.

        >>> RankSwitches.of_split(3, 2).spine.tolist()
        [0, 1, 2, 0, 1]
        """
        leaf = np.repeat(np.arange(len(sizes)), sizes)
        first = np.cumsum(sizes) - np.array(sizes, np.int64)
        return cls(leaf, np.arange(len(leaf)) - first[leaf])

    @classmethod
    def of_tree(cls, pods: Sequence[Sequence[int]]) -> RankSwitches:
        """So many ranks on each leaf of each pod; rank i of the k-th leaf of a pod has core k of lane i.

        >>> RankSwitches.of_tree([[2, 2], [2, 2]]).above.core.tolist()
        [0, 2, 1, 3, 0, 2, 1, 3]
        """
        sizes = [size for pod in pods for size in pod]
        flat = cls.of_split(*sizes)
        lanes, cores = max(sizes), max(map(len, pods))
        pod_of_leaf = np.repeat(np.arange(len(pods)), [len(pod) for pod in pods])
        place = np.concatenate([np.arange(len(pod)) for pod in pods])
        pod = pod_of_leaf[flat.leaf]
        core = flat.spine * cores + place[flat.leaf]
        return cls(flat.leaf, pod * lanes + flat.spine, Above(core, pod, np.arange(len(pods)) * lanes))

    def sizes(self) -> tuple[int, ...]:
        """Ranks on each leaf, or on rails each unit, in the order in which ranks visit them."""
        return tuple(len(list(run)) for _, run in groupby((self.leaf // self.rails).tolist()))

    def entering(self, src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        """Ranks at which flows enter and leave the network; on rails they are handed over inside servers."""
        return (src, dst) if self.gpus is None else relayed(self.gpus, self.rails, src, dst)

    def cross(self, src: Ints, dst: Ints) -> NDArray[np.bool_]:
        """Which flows go from leaf to leaf? On rails those inside a server do not."""
        apart = self.leaf[src] != self.leaf[dst]
        if self.gpus is None or self.rails == 1:
            return np.asarray(apart)
        return np.asarray(apart & (self.gpus[src] // self.rails != self.gpus[dst] // self.rails))

    def hops(self, src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        """(flow of every hop, [hop, (kind, switch below, switch above)]) of flows between leafs."""
        spine = self.spine[src]
        if (spine == OWN_LEAF).any():
            lost = int(src[spine == OWN_LEAF][0])
            raise ClusterError(
                f"rank {lost} sends to another leaf and has no spine: give it one, or keep it on its leaf"
            )
        last, flow = spine, np.arange(len(src))
        hops = [(flow, LEAF_UP, self.leaf[src], spine)]
        if self.above is not None:
            core, pod, first = self.above.core[src], self.above.pod, self.above.first_spine
            far = np.flatnonzero(pod[src] != pod[dst])
            last = first[pod[dst]] + spine - first[pod[src]]
            hops += [(far, SPINE_UP, spine[far], core[far]), (far, SPINE_DOWN, last[far], core[far])]
        hops.append((flow, LEAF_DOWN, self.leaf[dst], last))
        links = [np.column_stack([np.full(len(below), kind), below, over]) for _, kind, below, over in hops]
        return np.concatenate([one[0] for one in hops]), np.concatenate(links).astype(np.int64)
