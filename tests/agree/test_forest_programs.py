"""Forests as programs on the fabrics with known optima: proved, loads equal to the known rate, times as promised.

T(P) stands for (P + depth - 1) rounds of the length of a segment at the optimum. Paced to the rates of its trees, a
program takes T(P); in equal lanes, which links share out evenly, at most T(P). So both come within 1 % of the optimum
with 100 segments for each branch after the first, and often with fewer.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from forest_loads import prove_loads
from forest_worlds import GROWERS, depth_of, paced_seconds, proved_schedule, shared_seconds
from optimum_worlds import both_ways, fabric_of, known_fabric, known_fabrics

from ropewalk.collectives.forest.program import forest_schedule
from ropewalk.collectives.forest.segments import best_segments, forest_seconds
from ropewalk.collectives.optimum import network_of
from ropewalk.fabric import Dgx, Torus

SLOW = {"mi250x4x16", "dragonfly(a=4,p=2,h=2)"}
"""Take seconds to grow trees on."""

KNOWN = {known["name"]: known for known in known_fabrics()}
SMALL = [name for name, known in KNOWN.items() if len(known["compute"]) <= 16]
LARGE = [name for name, known in KNOWN.items() if 16 < len(known["compute"]) <= 100 and name not in SLOW]


def world(name):
    """A network by the name of its fabric."""
    if name == "dgx1v without a link":
        known = KNOWN["dgx1v"]
        fabric = fabric_of(8, 0, both_ways([link for link in known["duplex"] if link[:2] != [0, 1]]))
        return network_of(fabric)
    if name == "dgx1v, three of eight":
        return network_of(known_fabric(KNOWN["dgx1v"]), group=[0, 1, 2])
    if name == "a row of a torus":
        return network_of(Torus((4, 4)).build(), group=[0, 1, 2, 3])
    if name == "two servers":
        return network_of(Dgx(2).build())
    return network_of(known_fabric(KNOWN[name]))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("collective", GROWERS)
@pytest.mark.parametrize("segments", [1, 3])
def test_every_collective_is_proved_and_loads_its_busiest_link_as_the_optimum_says(name, collective, segments):
    forest = GROWERS[collective](world(name))
    schedule = proved_schedule(forest, collective, segments)
    assert prove_loads(schedule, forest, collective) == 1 / forest.algbw
    known = KNOWN[name]["expected"].get(collective)
    assert known is None or schedule.promise == Fraction(known)


@pytest.mark.parametrize(
    ("name", "collective"),
    [(name, kind) for name in LARGE for kind in ("allgather", "allreduce") if kind in KNOWN[name]["expected"]],
)
def test_large_fabrics_are_proved_too(name, collective):
    forest = GROWERS[collective](world(name))
    schedule = proved_schedule(forest, collective, 2)
    assert prove_loads(schedule, forest, collective) == 1 / Fraction(KNOWN[name]["expected"][collective])


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("collective", ["allgather", "allreduce"])
def test_paced_programs_take_what_the_closed_form_says(name, collective):
    forest = GROWERS[collective](world(name))
    size, start_up = 3 * float(forest.algbw), 0.01
    for segments in (1, 5, best_segments(size, forest.algbw, forest.depth, start_up)):
        schedule = forest_schedule(forest, collective, segments)
        expected = forest_seconds(size, forest.algbw, depth_of(schedule, segments), start_up, segments)
        assert paced_seconds(schedule, size, segments, start_up) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("collective", ["allgather", "allreduce"])
def test_equal_lanes_never_take_longer_than_the_closed_form_says(name, collective):
    forest = GROWERS[collective](world(name))
    size, start_up = 3 * float(forest.algbw), 0.01
    for segments in (1, 6):
        schedule = forest_schedule(forest, collective, segments, equal_lanes=True)
        most = forest_seconds(size, forest.algbw, depth_of(schedule, segments), start_up, segments)
        assert 3.0 < shared_seconds(schedule, size, start_up) <= most * (1 + 1e-9)


@pytest.mark.parametrize("name", ["mesh4x4", "torus4x4", "clos_2x8_host50_up100", "ring8uni"])
def test_a_broadcast_down_trees_of_equal_rates_follows_the_closed_form(name):
    forest = GROWERS["broadcast"](world(name))
    size = float(forest.algbw)
    for segments in (1, 4, 16):
        schedule = forest_schedule(forest, "broadcast", segments)
        expected = forest_seconds(size, forest.algbw, depth_of(schedule, segments), 0.0, segments)
        assert shared_seconds(schedule, size) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "collective", "segments"),
    [
        ("dgx1v", "allgather", 160),
        ("dgx1v", "allreduce", 160),
        ("dgx1v without a link", "allreduce", 900),
        ("dgx1v, three of eight", "allgather", 16),
        ("dgx1v, three of eight", "allreduce", 16),
        ("two servers", "allgather", 100),
        ("mesh4x4", "allgather", 100),
        ("mesh4x4", "allreduce", 1600),
        ("torus4x4", "reducescatter", 120),
        ("torus4x4", "allreduce", 120),
        ("a row of a torus", "allgather", 160),
        ("a100_2box_nic_quarter", "allgather", 100),
        ("clos_2x8_host50_up100", "allgather", 160),
        ("ring8", "allreduce", 100),
        ("kautz(2,3)", "allreduce", 100),
    ],
)
def test_with_enough_segments_simulations_come_within_one_percent_of_the_optimum(name, collective, segments):
    forest = GROWERS[collective](world(name))
    schedule = forest_schedule(forest, collective, segments, equal_lanes=True)
    assert shared_seconds(schedule, float(forest.algbw)) == pytest.approx(1.0, rel=0.01)


def test_heavy_and_light_trees_that_share_links_evenly_miss_the_promise():
    """Why there are equal lanes: however many segments, light trees run ahead and leave the links to the heavy ones."""
    forest = GROWERS["allgather"](world("dgx1v"))
    assert shared_seconds(forest_schedule(forest, "allgather", 256), float(forest.algbw)) > 1.1


@pytest.mark.parametrize("collective", GROWERS)
def test_relays_that_forward_as_ranks_keep_the_promise(collective):
    forest = GROWERS[collective](world("dgx1v, three of eight"))
    schedule = proved_schedule(forest, collective, 600, relays_as_ranks=True, equal_lanes=True)
    assert shared_seconds(schedule, float(forest.algbw)) == pytest.approx(1.0, rel=0.01)
