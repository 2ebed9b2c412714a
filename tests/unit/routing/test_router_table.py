"""The table of routers by name, the default for each fabric, and what importing the package costs."""

import subprocess
import sys

import numpy as np
import pytest

from ropewalk.errors import RouteError
from ropewalk.fabric import (
    BCube,
    Circulant,
    Dgx,
    Dragonfly,
    FatTree,
    Hypercube,
    IdealSwitch,
    LeafSpine,
    Mesh,
    RandomRegular,
    Ring,
    Torus,
)
from ropewalk.routing import ROUTERS, default_router_name, router_for

BUILDERS = {
    "dmodk": [FatTree(4), LeafSpine(3, 2, 2), IdealSwitch(4)],
    "dimension-rotated": [BCube(3, 2), Torus((3, 4)), Mesh((3, 2)), Hypercube(3), Ring(5)],
    "shortest": [Dragonfly(3, 2, 2, 1), RandomRegular(8, 3, seed=1), Circulant(8, (1, 3)), Dgx(2, 4)],
}
EVERY = [(builder, name) for name, builders in BUILDERS.items() for builder in builders]


@pytest.mark.parametrize(("builder", "name"), EVERY, ids=lambda value: getattr(value, "expression", value))
def test_every_fabric_has_its_default(builder, name):
    assert default_router_name(builder.build()) == name


@pytest.mark.parametrize("builder", [builder for builder, _ in EVERY], ids=lambda builder: builder.expression)
@pytest.mark.parametrize("router", ROUTERS)
def test_a_router_routes_where_it_fits_and_names_those_that_fit_elsewhere(router, builder):
    fabric = builder.build()
    host = np.arange(fabric.hosts)
    pairs = host, (host + 1) % fabric.hosts
    if router in ROUTERS.names_for(fabric):
        routes = ROUTERS[router].make(1)(fabric, *pairs)
        routes.check()
        assert routes.pairs == fabric.hosts
    else:
        with pytest.raises(RouteError, match=f"router {router} needs .*: use one of shortest, ecmp"):
            router_for(fabric, router)
        with pytest.raises(RouteError, match=f"router {router} needs .*: see `ropewalk list routers`"):
            ROUTERS[router].make(1)(fabric, *pairs)


def test_every_name_in_use_stands_in_the_table():
    named = {name for builder, _ in EVERY for name in ROUTERS.names_for(builder.build())}
    assert named == set(ROUTERS)


def test_a_fabric_read_from_a_file_is_routed_by_search():
    fabric = IdealSwitch(4).build()
    anonymous = type(fabric)(
        *("copied", fabric.node_names, fabric.hosts, fabric.level, fabric.link_src, fabric.link_dst),
        *(fabric.bandwidth, fabric.latency, fabric.cables),
    )
    assert default_router_name(anonymous) == "shortest"
    assert "dmodk" not in ROUTERS.names_for(anonymous)


def test_numba_is_not_loaded_before_a_search_needs_it():
    program = """
import sys
import numpy as np
import ropewalk.routing as routing
from ropewalk.fabric import FatTree, Torus
pair = np.array([0]), np.array([5])
routing.dmodk(FatTree(4).build(), *pair).check()
routing.dimension()(Torus((3, 3)).build(), *pair).check()
assert "numba" not in sys.modules, "loaded too early"
routing.shortest(FatTree(4).build(), *pair).check()
assert "numba" in sys.modules, "this test looks for the wrong name"
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)
