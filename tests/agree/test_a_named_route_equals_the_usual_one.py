"""A transfer that names a row of the routes runs over it, at every level; two between the same hosts take two paths."""

import numpy as np
import pytest

from ropewalk.fabric import Ring
from ropewalk.routing import Routes, source_routes
from ropewalk.sim.level import LevelUse, run_at_level
from ropewalk.task import TaskGraph, TaskKind, make_graph

RING = Ring(4, bandwidth=1e9, latency=1e-6).build()
SHORT, LONG = [0, 1], [0, 3, 2, 1]


def two_sends(*route: int) -> TaskGraph:
    return make_graph([TaskKind.TRANSFER] * 2, 0, 1, 1e6, [0, 0, 0], [], route=route)


def usual(path: list[int]) -> Routes:
    return source_routes(RING, {(0, 1): path})


def seconds(graph: TaskGraph, routes: Routes, level: str) -> list[float]:
    return run_at_level(graph, routes, LevelUse(level)).trace.end.tolist()


@pytest.mark.parametrize("level", ["flow", "wire", "packet"])
def test_naming_a_row_is_routing_the_pair_that_way(level):
    named = seconds(two_sends(1, 1), usual(SHORT).with_rows(usual(LONG)), level)
    assert named == pytest.approx(seconds(two_sends(-1, -1), usual(LONG), level), rel=1e-12)


@pytest.mark.parametrize("level", ["flow", "wire", "packet"])
def test_two_paths_between_the_same_hosts_are_both_used(level):
    both = usual(SHORT).with_rows(usual(LONG))
    apart, shared = seconds(two_sends(-1, 1), both, level), seconds(two_sends(-1, -1), both, level)
    assert max(apart) < 0.6 * max(shared)


def test_every_link_is_charged_with_what_crossed_it():
    trace = run_at_level(two_sends(-1, 1), usual(SHORT).with_rows(usual(LONG)), LevelUse("flow")).trace
    assert np.count_nonzero(trace.link_bytes) == 4
    assert set(trace.link_bytes.tolist()) == {0.0, 1e6}
