"""Which router fits which fabric."""

from __future__ import annotations

from ropewalk.errors import RouteError
from ropewalk.fabric import (
    BCube,
    Builder,
    Cluster,
    Fabric,
    FatTree,
    Hypercube,
    IdealSwitch,
    LeafSpine,
    Mesh,
    Ring,
    Torus,
)

ANY_FABRIC = ("shortest", "ecmp", "ecmp-polarised", "murmur")
ON_TREES = ("dmodk", "spray")
ON_GRIDS = ("dimension", "dimension-rotated")

_TREES = (FatTree, LeafSpine, IdealSwitch)
_GRIDS = (Torus, Mesh, Ring, Hypercube, BCube)


def fitting_router_names(fabric: Fabric) -> tuple[str, ...]:
    """Names of the routers that can route on this fabric.

    >>> fitting_router_names(Torus((4, 4)).build())
    ('shortest', 'ecmp', 'ecmp-polarised', 'murmur', 'dimension', 'dimension-rotated')
    """
    network = _network(fabric)
    if isinstance(network, _TREES):
        return ANY_FABRIC + ON_TREES
    return ANY_FABRIC + ON_GRIDS if isinstance(network, _GRIDS) else ANY_FABRIC


def default_router_name(fabric: Fabric) -> str:
    """The router that spreads load best on this fabric: what people mean when they name none."""
    network = _network(fabric)
    if isinstance(network, _TREES):
        return "dmodk"
    return "dimension-rotated" if isinstance(network, _GRIDS) else "shortest"


def _network(fabric: Fabric) -> Builder | None:
    """What routers choose ways in: of servers of GPUs, the network between them."""
    return fabric.builder.network if isinstance(fabric.builder, Cluster) else fabric.builder


def misfit(router: str, fabric: Fabric) -> RouteError:
    """The error of a router that was asked for a fabric it cannot route."""
    names = ", ".join(fitting_router_names(fabric))
    return RouteError(f"router {router} does not fit {fabric.name}: use one of {names}")
