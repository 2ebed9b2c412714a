"""What must hold of a plant before anybody works with it; everything that does not is reported together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.parameters import at_least, speeds
from ropewalk.tenancy.tiers import Tiers

if TYPE_CHECKING:
    from ropewalk.tenancy.plant import Plant

MOST_GPUS_PER_SERVER = 62
"""The free GPUs of a server are the bits of one signed 64-bit number."""
MOST_CABLES = 62
"""The free cables between two switches are the bits of one, too."""


def check_plant(plant: Plant) -> Tiers:
    """Refuse what is no plant; answers its pods and planes."""
    findings = Findings(FabricError, f"plant {plant.name}")
    at_least(findings, 1, leafs=plant.leafs, servers=plant.servers, gpus_per_server=plant.gpus_per_server)
    speeds(
        findings,
        0.0,
        nic_bandwidth=plant.nic_bandwidth,
        link_bandwidth=plant.link_bandwidth,
        server_bandwidth=plant.server_bandwidth,
    )
    if plant.gpus_per_server > MOST_GPUS_PER_SERVER:
        findings.add(f"a server has {plant.gpus_per_server} GPUs: give {MOST_GPUS_PER_SERVER} or fewer")
    leaf = plant.server_leaf
    if plant.servers and (leaf.min() < 0 or leaf.max() >= plant.leafs):
        findings.add(f"a server is on leaf {leaf.max()} of {plant.leafs}: give a row of cables for every leaf")
    if (np.diff(leaf) < 0).any():
        findings.add("servers are not sorted by leaf: list them leaf by leaf")
    for what, cables in (("cables", plant.cables), ("core cables", plant.core_cables)):
        if cables.size and (cables.min() < 0 or cables.max() > MOST_CABLES):
            findings.add(f"{what} range from {cables.min()} to {cables.max()}: give 0 to {MOST_CABLES}")
    if len(plant.core_cables) != plant.spines:
        findings.add(f"core cables have {len(plant.core_cables)} rows for {plant.spines} spines: give one for each")
    _check_rails(plant, findings)
    for what, names, count in (
        ("server", plant.server_names, plant.servers),
        ("leaf", plant.leaf_names, plant.leafs),
        ("spine", plant.spine_names, plant.spines),
        ("core", plant.core_names, plant.cores),
    ):
        _check_names(findings, what, names, count)
    findings.raise_if_any()
    tiers = Tiers.of(plant.cables, plant.core_cables, plant.rails, findings)
    if plant.cores and plant.rails > 1:
        _check_rails_of_spines(plant, tiers, findings)
    findings.raise_if_any()
    return tiers


def _check_rails(plant: Plant, findings: Findings) -> None:
    if plant.rails not in (1, plant.gpus_per_server):
        findings.add(f"there are {plant.rails} rails for servers of {plant.gpus_per_server} GPUs: give a rail for each")
    elif plant.leafs % plant.rails:
        findings.add(
            f"{plant.leafs} leafs are not whole units of {plant.rails} rails: give a leaf for each rail of each"
        )
    elif (plant.server_leaf % plant.rails).any():
        findings.add(f"a server is on a leaf that is not the first of its unit: give multiples of {plant.rails}")


def _check_rails_of_spines(plant: Plant, tiers: Tiers, findings: Findings) -> None:
    """Below cores every spine belongs to one rail, so that rails have lanes of their own."""
    rail = np.arange(plant.leafs) % plant.rails
    lane = np.arange(plant.spines) - tiers.first_spine[tiers.pod_of_spine]
    of_lane: dict[int, int] = {}
    for leaf, spine in zip(*np.nonzero(plant.cables), strict=True):
        if of_lane.setdefault(int(lane[spine]), int(rail[leaf])) != rail[leaf]:
            findings.add(
                f"spine {plant.spine_names[spine]} below cores serves several rails: give every rail its own spines"
            )
            return


def _check_names(findings: Findings, what: str, names: Sequence[str], count: int) -> None:
    if len(names) != count:
        findings.add(f"there are {len(names)} {what} names for {count} items: name each once")
    for name in _twice(names):
        findings.add(f"{what} {name!r} is listed twice: remove one of the two")


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    again = []
    for name in names:
        if name in seen and name not in again:
            again.append(name)
        seen.add(name)
    return again
