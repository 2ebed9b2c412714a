"""The fabric of a plant, for simulators: GPUs as hosts, NIC links, cables one by one, links inside servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ropewalk.fabric import Fabric
from ropewalk.fabric.fabric import FabricDraft

if TYPE_CHECKING:
    from ropewalk.tenancy.plant import Plant


def fabric_of(plant: Plant) -> Fabric:
    """Nodes are GPUs, leafs, spines, cores, and a switch inside each server that holds several GPUs."""
    draft = FabricDraft(plant.name)
    inside = range(plant.gpus_per_server)
    gpus = draft.add_hosts([f"{server}.{gpu}" for server in plant.server_names for gpu in inside])
    leafs = draft.add_switches(plant.leaf_names, level=1)
    spines = draft.add_switches(plant.spine_names, level=2)
    cores = draft.add_switches(plant.core_names, level=3) if plant.cores else np.zeros(0, np.int32)
    draft.add_links(gpus, leafs[plant.leaf_of_gpu], plant.nic_bandwidth)
    for below, above, cables in ((leafs, spines, plant.cables), (spines, cores, plant.core_cables)):
        if cables.any():
            low, high = np.divmod(np.repeat(np.arange(cables.size), cables.ravel()), cables.shape[1])
            draft.add_links(below[low], above[high], plant.link_bandwidth)
    server = np.repeat(np.arange(plant.servers, dtype=np.int32), plant.gpus_per_server)
    if plant.gpus_per_server > 1:
        switches = draft.add_switches([f"inside {server}" for server in plant.server_names], level=1)
        draft.add_links(gpus, switches[server], plant.server_bandwidth)
    return draft.freeze(server=server)
