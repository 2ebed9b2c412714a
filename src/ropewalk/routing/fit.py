"""Which router fits which fabric."""

from __future__ import annotations

from ropewalk.errors import RouteError
from ropewalk.fabric import (
    BCube,
    Builder,
    Fabric,
    FatTree,
    Hypercube,
    IdealSwitch,
    LeafSpine,
    Mesh,
    Ring,
    ServerFabric,
    Torus,
)

_TREES = (FatTree, LeafSpine, IdealSwitch)
_GRIDS = (Torus, Mesh, Ring, Hypercube, BCube)

TREES = "fat-tree, leaf-spine, switch"
GRIDS = "torus, mesh, ring, hypercube, bcube"


def needs_a_tree(place: Fabric | Builder) -> str | None:
    """The refusal of a router that follows the levels of a tree of switches.

    >>> needs_a_tree(Ring(4))
    'needs a tree of switches (fat-tree, leaf-spine, switch), which ring:4 is not'
    """
    return None if isinstance(_network(place), _TREES) else f"needs a tree of switches ({TREES}), which {_said(place)}"


def needs_a_grid(place: Fabric | Builder) -> str | None:
    """The refusal of a router that corrects one coordinate after the other."""
    return None if isinstance(_network(place), _GRIDS) else f"needs coordinates ({GRIDS}), which {_said(place)}"


def _network(place: Fabric | Builder) -> Builder | None:
    """What routers choose paths in: of servers of GPUs, the network between them."""
    builder = place.builder if isinstance(place, Fabric) else place
    return builder.network if isinstance(builder, ServerFabric) else builder


def _said(place: Fabric | Builder) -> str:
    if isinstance(place, Fabric):
        return f"{place.name} is not" if place.builder is not None else f"{place.name}, read from a file, does not show"
    return f"{place.expression} is not"


def misfit(router: str, refusal: str | None) -> RouteError:
    """The error of a router that was handed a fabric it cannot route."""
    return RouteError(f"router {router} {refusal}: see `ropewalk list routers`")
