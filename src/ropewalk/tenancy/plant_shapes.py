"""What a plant is made of, from the shape of a fabric: where servers stand, and which switches have cables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ropewalk.documents.numbers import is_count
from ropewalk.errors import FabricError
from ropewalk.fabric import FatTree, LeafSpine
from ropewalk.fabric.parameters import numbered_in_groups
from ropewalk.tenancy.plant_names import RAILS


def leaf_spine(shape: LeafSpine, gpus_per_server: int, *, rails: bool) -> dict[str, Any]:
    """Servers below one leaf each, or by rail on as many consecutive leafs as a server has GPUs."""
    each = gpus_per_server if rails else 1
    per_leaf = (
        shape.hosts_per_leaf if rails else _whole_servers(shape.expression, shape.hosts_per_leaf, gpus_per_server)
    )
    name = RAILS + shape.expression.removeprefix("leaf-spine") if rails else shape.expression
    if shape.leafs % each:
        raise FabricError(
            f"{name} has {shape.leafs} leafs, which are not whole units of {each} rails: give a multiple of {each} "
            "leafs, one for each GPU of a server"
        )
    units = shape.leafs // each
    return {
        "name": name,
        "gpus_per_server": gpus_per_server,
        "server_leaf": np.repeat(np.arange(units, dtype=np.int32) * each, per_leaf),
        "cables": np.full((shape.leafs, shape.spines), shape.cables, np.int32),
        "nic_bandwidth": shape.bandwidth,
        "link_bandwidth": shape.uplink,
        "rails": each,
        "leaf_names": rail_names(units, each) if rails else (),
    }


def fat_tree(shape: FatTree, gpus_per_server: int) -> dict[str, Any]:
    """Servers below edge switches; aggregation switch j of every pod and core group j are a plane."""
    half, up, pods = shape.half, shape.uplinks, shape.pod_count
    per_leaf = _whole_servers(shape.expression, half, gpus_per_server)
    own_cores = np.kron(np.eye(up, dtype=np.int32), np.ones((1, half), np.int32))
    return {
        "name": shape.expression,
        "gpus_per_server": gpus_per_server,
        "server_leaf": np.repeat(np.arange(pods * half, dtype=np.int32), per_leaf),
        "cables": np.kron(np.eye(pods, dtype=np.int32), np.ones((half, up), np.int32)),
        "nic_bandwidth": shape.bandwidth,
        "link_bandwidth": shape.bandwidth,
        "leaf_names": tuple(numbered_in_groups("edge", pods, half)),
        "spine_names": tuple(numbered_in_groups("agg", pods, up)),
        "core_cables": np.tile(own_cores, (pods, 1)),
        "core_names": tuple(numbered_in_groups("core", up, half)),
    }


def rail_only(expression: str, numbers: str, gpus_per_server: int, bandwidth: float) -> dict[str, Any]:
    """Units of rails with nothing above them."""
    units, _, servers = numbers.partition("x")
    if not (is_count(units) and is_count(servers) and int(units) and int(servers)):
        raise FabricError(
            f"{expression!r} is not a rail-only network: write rail-only:UNITSxSERVERS, such as rail-only:4x32"
        )
    count = int(units)
    return {
        "name": expression,
        "gpus_per_server": gpus_per_server,
        "server_leaf": np.repeat(np.arange(count, dtype=np.int32) * gpus_per_server, int(servers)),
        "cables": np.zeros((count * gpus_per_server, 0), np.int32),
        "nic_bandwidth": bandwidth,
        "link_bandwidth": bandwidth,
        "rails": gpus_per_server,
        "leaf_names": rail_names(count, gpus_per_server),
    }


def rail_names(units: int, rails: int) -> tuple[str, ...]:
    """Names of leafs, unit by unit."""
    return tuple(f"unit{unit}.rail{rail}" for unit in range(units) for rail in range(rails))


def _whole_servers(expression: str, ports: int, gpus_per_server: int) -> int:
    """Servers that stand whole on a leaf."""
    if gpus_per_server < 1 or ports % gpus_per_server:
        raise FabricError(
            f"{expression} has {ports} GPUs on a leaf, which are not whole servers of {gpus_per_server}: give a "
            f"divisor of {ports} as GPUs per server"
        )
    return ports // gpus_per_server
