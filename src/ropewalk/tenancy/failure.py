"""Parts that die or are drained while jobs run, and what becomes of the jobs that used them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ropewalk.errors import ClusterError, Findings
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.optical.circuits import ends_of
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.plant import Plant

WHEN_A_LINK_DIES = ("ecmp", "re-place")
"""What a job with reserved links does when one of them dies: its flows there are hashed over all links that are alive,
through those of other jobs; or it stops and is placed anew before everybody who waits."""


@dataclass(frozen=True)
class Failure:
    """Parts of the plant go at one moment and may come back at another.

    >>> Failure(3600.0, Drained(spines=[2])).until_s
    inf
    """

    at_s: float
    parts: Drained
    until_s: float = math.inf
    drain: bool = False
    """Only new jobs stay away; running ones go on."""


def check_policy(when_a_link_dies: str) -> None:
    if when_a_link_dies not in WHEN_A_LINK_DIES:
        raise ClusterError(f"when a link fails, jobs can {' or '.join(WHEN_A_LINK_DIES)}, not {when_a_link_dies!r}")


def check_failures(failures: Sequence[Failure], plant: Plant) -> None:
    """Every part exists, every time is one, and nothing fails twice at a time."""
    findings = Findings(ClusterError, "failures")
    for failure in failures:
        if not (math.isfinite(failure.at_s) and failure.at_s >= 0 and failure.until_s > failure.at_s):
            findings.add(f"one lasts from {failure.at_s} s to {failure.until_s} s: give a start and a later end")
    findings.raise_if_any()
    for failure in failures:
        failure.parts.check(plant)
    for number, one in enumerate(failures):
        for other in failures[:number]:
            if one.at_s < other.until_s and other.at_s < one.until_s and _overlap(one.parts, other.parts):
                findings.add(f"a part that fails at {one.at_s:g} s is already out of service: list it once")
    findings.raise_if_any()


def in_order(failures: Sequence[Failure]) -> list[tuple[float, bool, Failure]]:
    """(time, comes back, failure) by time; at one moment what comes back is first."""
    gone = [(one.at_s, False, one) for one in failures]
    back = [(one.until_s, True, one) for one in failures if one.until_s < math.inf]
    return sorted([*gone, *back], key=lambda change: (change[0], not change[1]))


def loses_gpus(parts: Drained, plant: Plant, allocation: Allocation) -> bool:
    """Are GPUs of the job on a server or leaf that is gone?"""
    servers = {gpu // plant.gpus_per_server for gpu in allocation.gpus}
    return bool(servers & set(parts.servers)) or bool(set(allocation.leafs) & set(parts.leafs))


def loses_links(parts: Drained, plant: Plant, allocation: Allocation) -> bool:
    """Is a link that the job has reserved gone, or a fibre or optical switch of its circuits?"""
    ends = [*allocation.links]
    if isinstance(plant, OpticalPlant) and allocation.stage == "ocs":
        switches = ends_of(plant, allocation).switch + plant.packet_spines
        ends += zip((leaf for leaf, _ in allocation.links), switches.tolist(), strict=True)
    if isinstance(plant, PodOpticalPlant) and allocation.has_circuits:
        if _loses_fibres(parts, plant, allocation):
            return True
        ends = []
    above = [*allocation.core_links]
    if allocation.stage == "ocs-core":  # its core links end in optical switches, and its circuits in cores behind them
        above += zip(allocation.spine_of_gpu, allocation.core_of_gpu, strict=True)
    return any(
        link in down.links or link[0] in down.below or link[1] in down.above
        for held, down in ((ends, parts.above_leafs), (above, parts.above_spines))
        for link in held
    )


def _loses_fibres(parts: Drained, plant: PodOpticalPlant, allocation: Allocation) -> bool:
    """A link between a leaf and a spine is the fibre of the leaf that stands for it, whatever that is joined with."""
    held = ends_of(plant, allocation)
    used = set(zip(held.leaf.tolist(), held.switch.tolist(), strict=True))
    gone = {(leaf, switch) for leaf, spine in parts.links for switch in plant.home_switch[leaf, spine].tolist()}
    down = parts.above_leafs
    return bool(used & gone) or any(leaf in down.below or spine in down.above for leaf, spine in allocation.links)


def _overlap(one: Drained, other: Drained) -> bool:
    pairs = (
        (one.servers, other.servers),
        (one.leafs, other.leafs),
        (one.spines, other.spines),
        (one.links, other.links),
        (one.cores, other.cores),
        (one.core_links, other.core_links),
    )
    return any(set(a) & set(b) for a, b in pairs)
