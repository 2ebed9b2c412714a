"""Laws of forests as programs: on any small fabric, with any group and shards, they are proved and keep the rate."""

from __future__ import annotations

from fractions import Fraction

import pytest
from forest_loads import prove_loads
from forest_worlds import GROWERS, depth_of, paced_seconds, proved_schedule, shared_seconds
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from optimum_worlds import fabric_of, small_fabrics

from ropewalk.collectives.forest.segments import forest_seconds
from ropewalk.collectives.optimum import network_of
from ropewalk.errors import ProgramError


@st.composite
def networks(draw, *, shards=True):
    """A network of a group of hosts, in any order, with shards; the other hosts forward."""
    hosts, switches, links = draw(small_fabrics(alike=draw(st.booleans()), most_hosts=6, most_switches=2))
    group = draw(st.lists(st.integers(0, hosts - 1), min_size=2, max_size=hosts, unique=True))
    some = st.lists(st.integers(0, 3), min_size=len(group), max_size=len(group)).filter(any)
    weights = draw(some) if shards and draw(st.booleans()) else None
    return network_of(fabric_of(hosts, switches, links), group, shards=weights)


def grown(collective, network):
    """A forest; networks whose best capacities are no simple fractions have none."""
    try:
        return GROWERS[collective](network)
    except ProgramError:
        assume(False)


@pytest.mark.parametrize("collective", GROWERS)
@given(networks(), st.integers(1, 4))
@settings(max_examples=25)
def test_programs_on_any_fabric_are_proved_and_load_the_busiest_link_exactly(collective, network, segments):
    forest = grown(collective, network)
    schedule = proved_schedule(forest, collective, segments)
    assert prove_loads(schedule, forest, collective) == 1 / forest.algbw
    assert schedule.hosts.tolist() == network.members.tolist()
    assert depth_of(schedule, segments) <= forest.depth


@pytest.mark.parametrize("collective", GROWERS)
@given(networks(), st.integers(1, 3), st.booleans())
@settings(max_examples=25)
def test_relays_as_ranks_are_proved_and_only_switches_stand_between_ranks(collective, network, segments, equal):
    schedule = proved_schedule(
        grown(collective, network), collective, segments, relays_as_ranks=True, equal_lanes=equal
    )
    fabric, routes = network.fabric, schedule.routes
    inner = fabric.link_dst[routes.link[[at for at in range(len(routes.link)) if at + 1 not in set(routes.link_start)]]]
    assert (inner >= fabric.hosts).all()
    members = len(network.members)
    assert schedule.hosts[:members].tolist() == network.members.tolist()
    relays = schedule.hosts[members:].tolist()
    assert relays == sorted(set(range(fabric.hosts)) & set(relays) - set(network.members.tolist()))


@pytest.mark.parametrize("collective", ["allgather", "allreduce", "reduce"])
@given(networks(), st.integers(1, 6), st.sampled_from([0.0, 0.1]))
@settings(max_examples=20)
def test_paced_programs_take_the_closed_form_and_equal_lanes_at_most_that(collective, network, segments, start_up):
    forest = grown(collective, network)
    size = float(forest.algbw)
    schedule = proved_schedule(forest, collective, segments)
    expected = forest_seconds(size, forest.algbw, depth_of(schedule, segments), start_up, segments)
    assert paced_seconds(schedule, size, segments, start_up) == pytest.approx(expected, rel=1e-6)
    even = proved_schedule(forest, collective, segments, equal_lanes=True)
    assert shared_seconds(even, size, start_up) <= expected * (1 + 1e-6)


@given(networks(shards=False), st.integers(1, 3))
@settings(max_examples=20)
def test_a_forest_at_another_rate_has_the_same_program(network, segments):
    forest = grown("allgather", network)
    schedules = [proved_schedule(it, "allgather", segments) for it in (forest, forest.scaled(Fraction(1, 3)))]
    programs = [schedule.program for schedule in schedules]
    assert programs[0].chunks == programs[1].chunks
    assert (programs[0].sent_chunks() == programs[1].sent_chunks()).all()
