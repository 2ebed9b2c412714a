"""Collectives as programs that prove themselves: ring, mesh, parameter server, hierarchies, trees, all-to-all.

>>> program = mesh_all_reduce(4)
>>> program.check()
>>> len(program.rounds)
2
"""

from ropewalk.collectives.double_tree import double_tree_all_reduce
from ropewalk.collectives.exchange import (
    direct_all_to_all,
    hierarchical_all_to_all,
    shift_all_to_all,
    xor_all_to_all,
)
from ropewalk.collectives.halving_doubling import (
    doubling_all_gather,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
)
from ropewalk.collectives.hamiltonian import hamiltonian_cycles
from ropewalk.collectives.hips import (
    Process,
    hips,
    hips_bcube,
    hips_fat_tree,
    hips_leaf_spine,
    hips_torus,
    hips_two_levels,
    near_square,
    rotated,
)
from ropewalk.collectives.mesh import mesh_all_gather, mesh_all_reduce, mesh_reduce_scatter
from ropewalk.collectives.on_fabric import fabric_cycles
from ropewalk.collectives.over_servers import chain_broadcast, chain_reduce
from ropewalk.collectives.parameter_server import dedicated_servers, shared_servers
from ropewalk.collectives.peers import Inside, PeerSets, mesh_inside, reverse_ring_inside, ring_inside
from ropewalk.collectives.program import Chunks, Condition, Pattern, Program, Round, arrows, everyone, only, owner
from ropewalk.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from ropewalk.collectives.rooted import binomial_broadcast, binomial_reduce
from ropewalk.collectives.scatter_gather import ScatterGather, in_parallel

__all__ = [
    "Chunks",
    "Condition",
    "Inside",
    "Pattern",
    "PeerSets",
    "Process",
    "Program",
    "Round",
    "ScatterGather",
    "arrows",
    "binomial_broadcast",
    "binomial_reduce",
    "chain_broadcast",
    "chain_reduce",
    "dedicated_servers",
    "direct_all_to_all",
    "double_tree_all_reduce",
    "doubling_all_gather",
    "everyone",
    "fabric_cycles",
    "halving_doubling_all_reduce",
    "halving_reduce_scatter",
    "hamiltonian_cycles",
    "hierarchical_all_to_all",
    "hips",
    "hips_bcube",
    "hips_fat_tree",
    "hips_leaf_spine",
    "hips_torus",
    "hips_two_levels",
    "in_parallel",
    "mesh_all_gather",
    "mesh_all_reduce",
    "mesh_inside",
    "mesh_reduce_scatter",
    "near_square",
    "only",
    "owner",
    "reverse_ring_inside",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_inside",
    "ring_reduce_scatter",
    "rotated",
    "shared_servers",
    "shift_all_to_all",
    "xor_all_to_all",
]
