"""Optical plants of any shape, and those of the published study."""

import numpy as np

from ropewalk.fabric.parameters import numbered
from ropewalk.tenancy.optical.plant import DEFAULT_RECONFIGURATION_S, OpticalPlant, spread_over


def optical_plant(
    *,
    leafs: int,
    spines: int,
    gpus_per_leaf: int,
    gpus_per_server: int = 4,
    spine_ports: int | None = None,
    reconfiguration_s: float = DEFAULT_RECONFIGURATION_S,
) -> OpticalPlant:
    """Leafs with as many fibres as GPUs, one to each switch; spines with just enough ports for all unless said."""
    switches = gpus_per_leaf
    ports = -(-leafs * switches // spines) if spine_ports is None else spine_ports
    return OpticalPlant(
        name=f"ocs-leaf-spine:{leafs}x{spines}x{gpus_per_leaf}",
        gpus_per_server=gpus_per_server,
        server_leaf=np.repeat(np.arange(leafs, dtype=np.int32), gpus_per_leaf // gpus_per_server),
        cables=np.hstack([np.zeros((leafs, spines), np.int32), np.ones((leafs, switches), np.int32)]),
        spine_names=(*numbered("spine", spines), *numbered("ocs", switches)),
        spine_fibres=spread_over(switches, np.full(spines, ports, np.int64)),
        reconfiguration_s=reconfiguration_s,
    )


def published_512() -> OpticalPlant:
    """32 leafs of four 4-GPU servers, 16 spines, 16 switches: two fibres from each spine to each switch."""
    return optical_plant(leafs=32, spines=16, gpus_per_leaf=16)


def published_8192() -> OpticalPlant:
    """256 leafs of 32 GPUs, 128 spines of 64 ports, 32 switches: fewer spine ports than leafs."""
    return optical_plant(leafs=256, spines=128, gpus_per_leaf=32)
