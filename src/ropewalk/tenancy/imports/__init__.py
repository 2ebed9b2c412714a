"""Clusters that other tools describe: Slurm topologies, Volcano HyperNodes, tables of leafs."""

from ropewalk.tenancy.imports.hints import Hints, read_nodes
from ropewalk.tenancy.imports.hostlist import compress, expand
from ropewalk.tenancy.imports.leaf_map import AssumedCabling, LeafMap
from ropewalk.tenancy.imports.source import READERS, read_leaf_map, read_plant

__all__ = [
    "READERS",
    "AssumedCabling",
    "Hints",
    "LeafMap",
    "compress",
    "expand",
    "read_leaf_map",
    "read_nodes",
    "read_plant",
]
