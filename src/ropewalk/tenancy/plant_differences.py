"""Two descriptions of a cluster that should be the same: what differs, in words."""

from __future__ import annotations

from ropewalk import units
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.plant_document import plant_document

FACTS = (
    "servers",
    "GPUs per server",
    "leafs",
    "spines",
    "leaf-spine cables",
    "a NIC",
    "a cable",
    "intra-server bandwidth per GPU",
)


def differences(kept: Plant, given: Plant) -> list[str]:
    """What differs between two clusters, in words; nothing where they are the same."""
    if plant_document(kept) == plant_document(given):
        return []
    found = [
        f"{about} {before} there, {after} here"
        for about, before, after in zip(FACTS, _facts(kept), _facts(given), strict=True)
        if before != after
    ]
    names = (("servers", "server_names"), ("leafs", "leaf_names"), ("spines", "spine_names"))
    for about, field in names:
        before, after = getattr(kept, field), getattr(given, field)
        other = next((pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]), None)
        if other is not None:
            found.append(f"{about} have other names ({other[0]} there, {other[1]} here)")
    return found or ["servers are on other leafs, or cables differ"]


def _facts(plant: Plant) -> list[str]:
    counts = (plant.servers, plant.gpus_per_server, plant.leafs, plant.spines, int(plant.cables.sum()))
    speeds = (plant.nic_bandwidth, plant.link_bandwidth, plant.server_bandwidth)
    return [*map(str, counts), *map(units.show_bandwidth, speeds)]
