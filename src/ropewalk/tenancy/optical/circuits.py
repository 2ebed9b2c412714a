"""What the circuits of a job are, and which of them a flow takes.

The ranks of a job are cut into virtual leafs of s GPUs; the job has s virtual spines. The entries of `links` and
`cables` are the circuits, virtual leaf by virtual leaf: circuit (a, i) joins virtual leaf a and virtual spine i
through switch `cables[a * s + i]`. Several virtual leafs may be on one leaf, several virtual spines on one spine.
Where s is 1, all circuits meet in one spine and every GPU has its own. Where the spines of a job are optical switches,
its two leafs are joined straight: circuits (0, i) and (1, i) are the two ends of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.seats import RankSwitches

NONE = -1


class Circuit(NamedTuple):
    """One connection inside an optical switch: a leaf with a spine, or with another leaf. Both directions."""

    switch: int
    leaf: int
    spine: int
    """-1 where two leafs are joined."""
    peer: int = NONE
    """The other leaf, of the higher number; -1 where a spine is at the other end."""

    def leaf_ports(self) -> tuple[tuple[int, int], ...]:
        """(leaf, switch) of every leaf fibre it takes."""
        ends = (self.leaf,) if self.peer == NONE else (self.leaf, self.peer)
        return tuple((leaf, self.switch) for leaf in ends)


@dataclass(frozen=True)
class Ends:
    """Columns of the entries of `links` of an allocation: which fibres each takes."""

    leaf: NDArray[np.int64]
    spine: NDArray[np.int64]
    """-1 where the circuit goes straight to another leaf."""
    switch: NDArray[np.int64]


def ends_of(plant: OpticalPlant | PodOpticalPlant, *held: Allocation) -> Ends:
    """The fibres that jobs hold, one entry for each fibre of a leaf."""
    columns = [one.circuit_columns for one in held if one.stage in ("ocs", "ocs-pods")]
    if not columns:
        empty = np.zeros(0, np.int64)
        return Ends(empty, empty, empty)
    leaf, spine, cable = (np.concatenate(column) for column in zip(*columns, strict=True))
    straight = spine >= plant.packet_spines
    switch = np.where(straight, spine - plant.packet_spines, cable)
    return Ends(leaf, np.where(straight, NONE, spine), switch)


def is_straight(plant: OpticalPlant | PodOpticalPlant, held: Allocation) -> bool:
    """Are the two leafs of the job joined without a spine?"""
    return held.stage == "ocs" and held.spines[0] >= plant.packet_spines


def circuits_of(plant: OpticalPlant | CoreOpticalPlant | PodOpticalPlant, held: Allocation) -> tuple[Circuit, ...]:
    """The circuits of a job, those of its first virtual leaf first; a straight one is listed once.

    Below cores, spines stand for leafs and cores for spines. Inside pods, switches are those of the leaf's pod.
    """
    if isinstance(plant, CoreOpticalPlant):
        return _between_pods(plant, held)
    ends = ends_of(plant, held)
    if held.stage == "ocs" and is_straight(plant, held):
        near, far = sorted(held.leafs)
        return tuple(Circuit(switch, near, NONE, far) for switch in ends.switch[: len(held.spines)].tolist())
    return tuple(map(Circuit, ends.switch.tolist(), ends.leaf.tolist(), ends.spine.tolist()))


def _between_pods(plant: CoreOpticalPlant, held: Allocation) -> tuple[Circuit, ...]:
    if held.stage != "ocs-core":
        return ()
    found, half = [], held.size // 2
    for rank, ((spine, switch), core) in enumerate(zip(held.core_links, held.core_of_gpu, strict=True)):
        if core >= plant.switches:
            found.append(Circuit(switch, spine, core - plant.switches))
        elif rank < half:  # the rank at the same place of the other pod is its other end
            found.append(Circuit(switch, spine, NONE, held.core_links[rank + half][0]))
    return tuple(found)


def virtual_leaf(held: Allocation, rank: int) -> int:
    """Ranks are counted through the virtual leafs, s on each; the last one of a straight job may hold fewer."""
    return rank // len(held.spines)


def way(held: Allocation, src: int, dst: int) -> tuple[int, ...]:
    """Which entries of `links` a flow between two ranks takes: up and down; none where both are on one leaf.

    The virtual spine is that of the source, the way down that of the destination's virtual leaf. A leaf sees the
    source and picks the fibre; a spine tells its virtual spines apart by the port a packet comes in at.
    """
    if held.leaf_of_gpu[src] == held.leaf_of_gpu[dst]:
        return ()
    width = len(held.spines)
    index = src % width
    return virtual_leaf(held, src) * width + index, virtual_leaf(held, dst) * width + index


def as_virtual_clos(held: Allocation) -> Allocation:
    """The job as if its virtual leafs and spines were real ones, numbered from 0: what the contention theory is about.

    Flows between virtual leafs on the same leaf stay there in truth, so the theory counts more than there is.
    """
    width = len(held.spines)
    leafs = -(-held.size // width)
    return Allocation(
        job=held.job,
        gpus=tuple(range(held.size)),
        stage="clos",
        leafs=tuple(range(leafs)),
        spines=tuple(range(width)),
        links=tuple((leaf, spine) for leaf in range(leafs) for spine in range(width)),
        spine_of_gpu=tuple(rank % width for rank in range(held.size)),
        leaf_of_gpu=tuple(rank // width for rank in range(held.size)),
    )


def as_virtual_tree(plant: Plant, held: Allocation) -> RankSwitches:
    """A job over pods as if its virtual cores were real ones, and its lanes those of its pods."""
    pods, leafs, lanes = shape_over_pods(plant, held)
    return RankSwitches.of_tree([[lanes] * leafs] * pods)


def shape_over_pods(plant: Plant, held: Allocation) -> tuple[int, int, int]:
    """(pods, virtual leafs of each, lanes) of a job over pods; its ranks are counted through them in this order."""
    pods = len(set(plant.tiers.pod_of_leaf[list(held.leafs)].tolist()))
    lanes = len(held.spines) // pods
    return pods, held.size // (pods * lanes), lanes


def start_delay_s(plant: Plant, held: Allocation) -> float:
    """How long a job waits for its mirrors before it can send: once, at its start, and only if it has circuits."""
    if not isinstance(plant, OpticalPlant | CoreOpticalPlant | PodOpticalPlant):
        return 0.0
    return plant.reconfiguration_s if held.has_circuits else 0.0
