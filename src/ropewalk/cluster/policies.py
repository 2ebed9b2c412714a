"""The ways of allocating by the names people type."""

from __future__ import annotations

from ropewalk.cluster.policy import Allocate
from ropewalk.cluster.shared import gpus_only
from ropewalk.cluster.vclos.laas import laas
from ropewalk.cluster.vclos.policy import vclos
from ropewalk.cluster.vclos.shapes import all_divisors

ALLOCATORS: dict[str, Allocate] = {
    "vclos": vclos(),
    "vclos-all-divisors": vclos(all_divisors),
    "laas": laas(),
    "none": gpus_only,
}
"""Policies over electrical leafs and spines; OCS-vClos needs an optical plant and has a door of its own."""
