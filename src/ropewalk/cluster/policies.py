"""The ways of allocating by the names people type."""

from __future__ import annotations

from ropewalk.cluster.optical.allocate import ocs_vclos, ocs_vclos_all_divisors
from ropewalk.cluster.policy import Allocate
from ropewalk.cluster.shared import gpus_only
from ropewalk.cluster.vclos.laas import laas
from ropewalk.cluster.vclos.policy import vclos
from ropewalk.cluster.vclos.shapes import all_divisors

ALLOCATORS: dict[str, Allocate] = {
    "vclos": vclos(),
    "vclos-all-divisors": vclos(all_divisors),
    "laas": laas(),
    "ocs-vclos": ocs_vclos,
    "ocs-vclos-all-divisors": ocs_vclos_all_divisors,
    "none": gpus_only,
}
"""By the name people type."""
OPTICAL = ("ocs-vclos", "ocs-vclos-all-divisors")
"""Those that need a plant with circuits between leafs and spines, and refuse any other."""
