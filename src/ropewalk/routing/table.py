"""Every router by the name people type, and which of them is meant when none is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ropewalk.choices import Choice, Choices
from ropewalk.errors import RouteError
from ropewalk.fabric import Builder, Fabric
from ropewalk.palette import AMBER, BLUE, BROWN, GREEN, NAVY, PINK, PURPLE, RUST
from ropewalk.routing.dimension import dimension, dimension_rotated
from ropewalk.routing.ecmp import ecmp, murmur
from ropewalk.routing.fit import GRIDS, TREES, needs_a_grid, needs_a_tree
from ropewalk.routing.routes import Router
from ropewalk.routing.servers import between_servers
from ropewalk.routing.shortest import shortest
from ropewalk.routing.tree import dmodk, spray

DEFAULT = "default"
"""What people write for the router that spreads load best on a fabric."""


@dataclass(frozen=True)
class RouterChoice(Choice[Callable[[int], Router]]):
    """A router: `make` takes the seed, which routers without randomness ignore.

    On servers of GPUs each of them routes the network between the servers.
    """

    hashes: bool = False
    """Does it pick one shortest path for each pair by a hash, so that loads depend on the seed?"""
    default: bool = False
    """Is it what people mean on the fabrics it applies to? Of several such, the last in the table is."""


ROUTERS = Choices(
    "router",
    (
        RouterChoice("shortest", lambda seed: between_servers(shortest), "one shortest path per pair, "
                     "deterministic", colour=BLUE, default=True),
        RouterChoice("ecmp", lambda seed: between_servers(ecmp(seed)), "ECMP: every switch hashes flows onto shortest "
                     "paths", colour=AMBER, hashes=True),
        RouterChoice("ecmp-polarised", lambda seed: between_servers(ecmp(seed, polarised=True)), "ECMP with the same "
                     "hash at every switch", colour=RUST, hashes=True),
        RouterChoice("murmur", lambda seed: between_servers(murmur(dport=100 + seed)), "ECMP with the hash of the RDMA "
                     "fork of ns-3", colour=BROWN, hashes=True),
        RouterChoice("dmodk", lambda seed: between_servers(dmodk), "D-mod-k: the destination number picks the path "
            "up a tree",
                     needs_a_tree, TREES, colour=GREEN, default=True),
        RouterChoice("spray", lambda seed: between_servers(spray), "all shortest paths of a tree in equal shares",
                     needs_a_tree, TREES, colour=PINK),
        RouterChoice("dimension", lambda seed: between_servers(dimension()), "dimension-order routing, in a fixed "
                     "order", needs_a_grid, GRIDS, colour=PURPLE),
        RouterChoice("dimension-rotated", lambda seed: between_servers(dimension_rotated()), "all rotations of the "
                     "dimension order in equal shares", needs_a_grid, GRIDS, colour=NAVY, default=True),
    ),
    error=RouteError,
)  # fmt: skip
"""All routers. Adding one is a file that makes it and a line here."""


def default_router_name(fabric: Fabric | Builder) -> str:
    """The router that spreads load best on this fabric: what people mean when they name none.

    >>> from ropewalk.fabric import FatTree, Torus
    >>> default_router_name(FatTree(4)), default_router_name(Torus((4, 4)))
    ('dmodk', 'dimension-rotated')
    """
    return [name for name in ROUTERS.names_for(fabric) if ROUTERS[name].default][-1]


def router_for(fabric: Fabric | Builder, name: str = DEFAULT) -> RouterChoice:
    """The router of this name, or the default, checked against the fabric.

    >>> from ropewalk.fabric import Ring
    >>> router_for(Ring(4), "spray")
    Traceback (most recent call last):
        ...
    ropewalk.errors.RouteError: router spray needs a tree of switches (fat-tree, leaf-spine, switch), which ring:4 is \
not: use one of shortest, ecmp, ecmp-polarised, murmur, dimension, dimension-rotated
    """
    if name == DEFAULT:
        return ROUTERS[default_router_name(fabric)]
    if name not in ROUTERS:
        raise RouteError(ROUTERS.unknown(name, also=[DEFAULT]))
    return ROUTERS.fitting(name, fabric)
