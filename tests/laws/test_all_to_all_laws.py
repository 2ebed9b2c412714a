"""Laws of all-to-all schedules on any small fabric."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optimum_worlds import fabric_of, small_fabrics

from ropewalk.collectives.all_to_all import best_paths, direct_schedule, in_pieces, relayed_schedule
from ropewalk.collectives.all_to_all.balance import balanced_flow
from ropewalk.collectives.all_to_all.decompose import paths_of_flow
from ropewalk.collectives.optimum import all_to_all, network_of
from ropewalk.sim.simulate import simulate_rounds
from ropewalk.task import lockstep


@given(small_fabrics(most_hosts=5), st.integers(2, 5))
@settings(max_examples=60)
def test_ways_carry_all_bytes_at_the_optimum_and_take_as_long_as_promised(world, members):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links), group=range(min(hosts, members)))
    paths = best_paths(network)
    paths.check()
    assert paths.gap == 0
    assert paths.algbw == all_to_all(network).algbw
    schedule = direct_schedule(paths)
    schedule.routes.check()
    run = simulate_rounds(lockstep(schedule.program, 1e3, hosts=schedule.hosts), schedule.routes)
    assert run.makespan * float(schedule.promise) == pytest.approx(1e3, rel=1e-6)


@given(small_fabrics(most_hosts=5), st.integers(2, 5), st.integers(1, 4), st.booleans())
@settings(max_examples=60)
def test_chunks_that_are_passed_on_arrive_and_never_beat_the_promise(world, members, segments, relays_as_ranks):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links), group=range(min(hosts, members)))
    paths = best_paths(network)
    schedule = relayed_schedule(paths, segments, relays_as_ranks=relays_as_ranks)
    schedule.program.check()
    schedule.routes.check()
    assert schedule.promise <= paths.algbw
    run = simulate_rounds(lockstep(schedule.program, 1e3, hosts=schedule.hosts), schedule.routes)
    assert run.makespan * float(schedule.promise) >= 1e3 * (1 - 1e-9)


@given(small_fabrics(most_hosts=5), st.integers(1, 12))
@settings(max_examples=40)
def test_pieces_carry_everything_and_lose_at_most_what_they_say(world, most):
    hosts, switches, links = world
    paths = best_paths(network_of(fabric_of(hosts, switches, links)))
    pieces = in_pieces(paths, most)
    pieces.check()
    assert pieces.whole <= most
    assert pieces.rate <= paths.rate


@given(small_fabrics(most_hosts=5))
@settings(max_examples=30, deadline=None)
def test_a_balanced_flow_and_its_bound_hold_the_optimum_between_them(world):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links))
    near = paths_of_flow(network, balanced_flow(network, near_enough=0.05, most_sweeps=60), fractions=False)
    near.check()
    best = best_paths(network)
    assert near.rate <= best.rate <= near.bound
