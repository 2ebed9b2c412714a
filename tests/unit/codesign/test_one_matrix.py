"""Circuits from one matrix: what keeping all-reduces and pairs apart is worth."""

import numpy as np
import pytest

from ropewalk.codesign.baselines import BASELINES, Site
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.finder import find_topology
from ropewalk.codesign.network import wired_network
from ropewalk.codesign.one_matrix import laid_from_one_matrix
from ropewalk.codesign.routes import router_of
from ropewalk.errors import InputError
from ropewalk.task.step import Act, Step, StepSketch

PORTS = {"degree": 4, "bandwidth": 12.5e9, "latency": 0.0}


def asked(servers: int, reduced: float, pairs: dict[tuple[int, int], float]) -> tuple[Demands, Step]:
    """The same bytes as demands and as a step."""
    matrix = np.zeros((servers, servers))
    sketch = StepSketch(servers)
    if reduced:
        sketch.collective(Act.ALL_REDUCE, range(servers), reduced)
    for (src, dst), size in pairs.items():
        matrix[src, dst] = size
        sketch.send(src, dst, size)
    sums = (GroupSum(tuple(range(servers)), reduced),) if reduced else ()
    return Demands(servers, sums, matrix), sketch.step()


def seconds(demands: Demands, step: Step) -> tuple[float, float]:
    """On circuits from one matrix, and on a wiring that keeps both apart."""
    wiring = find_topology(demands, **PORTS)
    apart = wired_network(wiring, router_of(wiring, demands))
    return time_step(step, laid_from_one_matrix(demands, **PORTS)).seconds, time_step(step, apart).seconds


def test_an_all_reduce_alone_loses_nothing():
    one, apart = seconds(*asked(8, 1e9, {}))
    # Four ports: two cables to either neighbour, or two rings.
    assert one == pytest.approx(apart) == pytest.approx(2 * 7 / 8 * 1e9 / 50e9)


def test_pairs_beside_an_all_reduce_are_far_apart_where_the_matrix_has_fixed_its_ring():
    """Every server sends to all others: two rings have them three hops apart at most, the ring of the matrix eight."""
    pairs = {(a, b): 50e6 for a in range(16) for b in range(16) if a != b}
    demands, step = asked(16, 1e9, pairs)
    one, apart = seconds(demands, step)
    assert one > 1.4 * apart
    laid = laid_from_one_matrix(demands, **PORTS).fabric
    assert set((laid.link_dst - laid.link_src) % 16) == {1, 15}


def test_every_server_keeps_to_its_ports_and_reaches_all_others():
    rng = np.random.default_rng(5)
    for servers in (2, 3, 9, 16):
        pairs = {(0, int(b)): float(rng.integers(1, 9)) * 1e6 for b in range(1, servers)}
        demands, _ = asked(servers, 0.0, pairs)
        network = laid_from_one_matrix(demands, **PORTS)
        ports = np.bincount(network.fabric.link_src, network.fabric.cables, servers)
        assert ports.max() <= 4
        src, dst = np.nonzero(~np.eye(servers, dtype=bool))
        routes = network.router(network.fabric, src.astype(np.int32), dst.astype(np.int32))
        routes.check()
        assert routes.pairs == servers * (servers - 1)


def test_one_port_connects_two_servers_and_no_more():
    assert BASELINES["one-matrix"].make(Site(servers=2, degree=1, bandwidth=12.5e9)).laid_for is not None
    with pytest.raises(InputError, match="one circuit per server cannot connect 16 servers: give 2 ports"):
        BASELINES["one-matrix"].make(Site(servers=16, degree=1, bandwidth=12.5e9))
