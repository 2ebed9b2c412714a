"""What a plant looks like above its leafs: pods of leafs and spines, and the planes of cores that join them.

With two tiers the whole plant is one pod. With three, a pod is what leaf-spine cables join, and a plane what cables
between spines and cores join. A *lane* is a place in a pod: the spines at the same place of all pods are of one plane,
so that what leaves a pod in a lane can arrive in the same lane of every other pod. In a fat-tree aggregation switch j
of every pod and the j-th group of cores are plane j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import Findings


@dataclass(frozen=True, eq=False)
class Tiers:
    """Pods and planes by number."""

    pod_of_leaf: Ints
    pod_of_spine: Ints
    first_leaf: Ints
    """Leafs of pod p are `first_leaf[p]` to `first_leaf[p + 1]` - 1."""
    first_spine: Ints
    """Spines of pod p are `first_spine[p]` to `first_spine[p + 1]` - 1."""
    first_core: Ints
    """Cores in the plane of spine j are `first_core[j]` to `end_core[j]` - 1."""
    end_core: Ints

    @property
    def pods(self) -> int:
        return len(self.first_leaf) - 1

    @property
    def lanes(self) -> int:
        """Spines of the widest pod."""
        return int(np.diff(self.first_spine).max())

    @property
    def cores_per_lane(self) -> int:
        """Cores of the widest plane."""
        return int((self.end_core - self.first_core).max(initial=0))

    def lane_of_spine(self) -> Ints:
        """Place of every spine in its pod."""
        return np.asarray(np.arange(len(self.pod_of_spine)) - self.first_spine[self.pod_of_spine], np.int64)

    @classmethod
    def of(cls, cables: NDArray[np.int32], core_cables: NDArray[np.int32], rails: int, findings: Findings) -> Tiers:
        """From the cables of a plant; what is not in order is a finding. Leafs of a unit are of one pod."""
        leafs, spines = cables.shape
        pod_of_leaf, pod_of_spine = np.zeros(leafs, np.int64), np.zeros(spines, np.int64)
        plane_of_spine, plane_of_core = _joined(core_cables > 0)
        if core_cables.shape[1]:
            pod_of_unit, pod_of_spine = _joined(np.asarray((cables > 0).reshape(-1, rails, spines).any(axis=1)))
            pod_of_leaf = np.repeat(pod_of_unit, rails)
            for what, group in (("leafs", pod_of_leaf), ("spines", pod_of_spine), ("cores", plane_of_core)):
                if (np.diff(group) < 0).any():
                    findings.add(f"{what} are not sorted by {'plane' if what == 'cores' else 'pod'}: list them so")
        pods = int(max(pod_of_leaf.max(initial=0), pod_of_spine.max(initial=0))) + 1
        first_spine = _starts(pod_of_spine, pods)
        planes = int(max(plane_of_spine.max(initial=-1), plane_of_core.max(initial=-1))) + 1
        first_core = _starts(plane_of_core, planes)
        made = cls(
            pod_of_leaf,
            pod_of_spine,
            _starts(pod_of_leaf, pods),
            first_spine,
            first_core[plane_of_spine] if core_cables.shape[1] else np.zeros(spines, np.int64),
            first_core[plane_of_spine + 1] if core_cables.shape[1] else np.zeros(spines, np.int64),
        )
        if core_cables.shape[1] and not findings:
            made._check_lanes(plane_of_spine, findings)
        return made

    def _check_lanes(self, plane_of_spine: Ints, findings: Findings) -> None:
        lane = self.lane_of_spine()
        for number in range(self.lanes):
            if len(np.unique(plane_of_spine[lane == number])) > 1:
                findings.add(
                    f"the spines at place {number} of pods have no core in common: order the spines of every pod so "
                    "that those at the same place reach the same cores"
                )
                return


def _starts(group: Ints, groups: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))]).astype(np.int64)


def _joined(cabled: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Groups of switches below and above that cables join, numbered by their first member below, then above."""
    below, above = np.full(cabled.shape[0], -1, np.int64), np.full(cabled.shape[1], -1, np.int64)
    number = 0
    for first in range(cabled.shape[0]):
        if below[first] >= 0:
            continue
        fresh = np.array([first])
        while len(fresh):
            below[fresh] = number
            reached = np.flatnonzero(cabled[fresh].any(axis=0) & (above < 0))
            above[reached] = number
            fresh = np.flatnonzero(cabled[:, reached].any(axis=1) & (below < 0))
        number += 1
    alone = np.flatnonzero(above < 0)
    above[alone] = number + np.arange(len(alone))
    return below, above
