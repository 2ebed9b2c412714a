"""Clusters that other tools describe: Slurm topologies, Volcano HyperNodes, tables of leafs."""

from ropewalk.cluster.imports.hints import Hints, read_nodes
from ropewalk.cluster.imports.hostlist import compress, expand
from ropewalk.cluster.imports.leaf_map import Cabling, LeafMap
from ropewalk.cluster.imports.source import READERS, read_leaf_map, read_plant

__all__ = ["READERS", "Cabling", "Hints", "LeafMap", "compress", "expand", "read_leaf_map", "read_nodes", "read_plant"]
