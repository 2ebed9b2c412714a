"""Where training runs: hosts, switches and links, from a builder, an expression or a file.

>>> Torus((8, 8)).build().links
256
>>> builder("torus:8x8") == Torus((8, 8))
True

Expressions and files are read by `expression.fabric`, files written by `files.write_fabric`, graphs exchanged with
other tools in `interchange`; `checks.facts` measures a fabric and `layout.layout` says where to draw its nodes. Those
stay in their modules, so that importing this package loads NumPy and nothing heavier.
"""

from ropewalk.fabric.bcube import BCube
from ropewalk.fabric.circulant import Circulant
from ropewalk.fabric.dgx import Dgx
from ropewalk.fabric.dragonfly import Dragonfly
from ropewalk.fabric.expression import builder, nearest
from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Builder, Fabric, FabricDraft
from ropewalk.fabric.fat_tree import FatTree
from ropewalk.fabric.hypercube import Hypercube
from ropewalk.fabric.leaf_spine import LeafSpine
from ropewalk.fabric.rails import RailSwitches
from ropewalk.fabric.random_regular import RandomRegular
from ropewalk.fabric.server_fabric import ServerFabric, ServerGroup
from ropewalk.fabric.switch import IdealSwitch
from ropewalk.fabric.torus import Mesh, Ring, Torus

__all__ = [
    "DEFAULT_BANDWIDTH",
    "BCube",
    "Builder",
    "Circulant",
    "Dgx",
    "Dragonfly",
    "Fabric",
    "FabricDraft",
    "FatTree",
    "Hypercube",
    "IdealSwitch",
    "LeafSpine",
    "Mesh",
    "RailSwitches",
    "RandomRegular",
    "Ring",
    "ServerFabric",
    "ServerGroup",
    "Torus",
    "builder",
    "nearest",
]
