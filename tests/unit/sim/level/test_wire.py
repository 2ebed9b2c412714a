"""Headers, acknowledgements and storing before forwarding, counted without packets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.collectives.table import program_on
from ropewalk.fabric import IdealSwitch, Torus
from ropewalk.routing import shortest
from ropewalk.sim import simulate, simulate_rounds
from ropewalk.sim.level import WireFormat, on_the_wire, rounds_on_the_wire
from ropewalk.task import Sketch, lockstep

ROCE = WireFormat(1000, 48, 60)


def _switch(hosts: int, latency: float = 0.0):
    return IdealSwitch(hosts, bandwidth=1e9, latency=latency).build()


def _on_the_wire(graph, routes):
    return simulate(graph, on_the_wire(simulate(graph, routes), ROCE))


def test_one_transfer_takes_its_headers_and_one_packet_stored_in_the_switch():
    sketch = Sketch()
    sketch.transfer(0, 1, 1e6)
    routes = shortest(_switch(2), np.array([0]), np.array([1]))
    run = _on_the_wire(sketch.graph(), routes)
    assert run.makespan == pytest.approx(1000 * 1048e-9 + 1048e-9)


def test_a_message_shorter_than_a_packet_is_stored_as_long_as_it_is():
    sketch = Sketch()
    sketch.transfer(0, 1, 100)
    routes = shortest(_switch(2), np.array([0]), np.array([1]))
    run = _on_the_wire(sketch.graph(), routes)
    assert run.makespan == pytest.approx(2 * 148e-9)


def test_transfers_both_ways_make_room_for_each_others_acknowledgements():
    sketch = Sketch()
    sketch.transfer(0, 1, 1e6)
    sketch.transfer(1, 0, 1e6)
    routes = shortest(_switch(2), np.array([0, 1]), np.array([1, 0]))
    run = _on_the_wire(sketch.graph(), routes)
    assert run.makespan == pytest.approx(1000 * 1108e-9 + 1048e-9, rel=1e-6)


def test_transfers_both_ways_one_after_the_other_do_not_meet_each_others_acknowledgements():
    sketch = Sketch()
    there = sketch.transfer(0, 1, 1e6)
    sketch.transfer(1, 0, 1e6, after=[there])
    routes = shortest(_switch(2), np.array([0, 1]), np.array([1, 0]))
    run = _on_the_wire(sketch.graph(), routes)
    assert run.makespan == pytest.approx(2 * (1000 * 1048e-9 + 1048e-9), rel=1e-6)


def test_a_host_that_relays_stores_packets_as_a_switch_does():
    fabric = Torus((5,), bandwidth=1e9).build()
    sketch = Sketch()
    sketch.transfer(0, 2, 1e6)
    run = _on_the_wire(sketch.graph(), shortest(fabric, np.array([0]), np.array([2])))
    assert run.makespan == pytest.approx(1000 * 1048e-9 + 1048e-9)


def test_the_slowest_link_of_a_way_is_not_counted_twice():
    # 1 GB/s from the host, 0.5 GB/s behind the switch: a packet alone takes both, all others only the slower one.
    fabric = _switch(2)
    slow = replace(fabric, bandwidth=np.where(fabric.link_dst == 1, 0.5e9, 1e9))
    sketch = Sketch()
    sketch.transfer(0, 1, 1e6)
    run = _on_the_wire(sketch.graph(), shortest(slow, np.array([0]), np.array([1])))
    assert run.makespan == pytest.approx(1048e-9 + 1000 * 2 * 1048e-9)


def test_rounds_in_opposite_directions_do_not_meet_their_acknowledgements():
    # A parameter server: all push, then all pull. Each link carries data one way and acknowledgements the other.
    fabric = _switch(4)
    rounds = lockstep(program_on(fabric, "ps"), 1e6)
    routes = shortest(fabric, *rounds.all_pairs())
    slower = rounds_on_the_wire(routes, rounds, ROCE)
    used = np.unique(routes.link)
    assert 1e9 / slower.fabric.bandwidth[used] == pytest.approx(np.full(len(used), 1.048))


def test_acknowledgements_that_come_after_the_last_packet_has_left_cost_nothing():
    # Rings of one packet a round over long wires: what comes back finds the link idle.
    def cost(latency: float) -> float:
        fabric = _switch(4, latency)
        rounds = lockstep(program_on(fabric, "ring"), 4000.0)
        routes = shortest(fabric, *rounds.all_pairs())
        return float((1e9 / rounds_on_the_wire(routes, rounds, ROCE).fabric.bandwidth[routes.link]).max())

    assert cost(0.0) == pytest.approx(1.108)
    assert cost(1e-3) == pytest.approx(1.048)


def test_symmetry_survives_the_headers():
    fabric = _switch(8)
    rounds = lockstep(program_on(fabric, "mesh"), 8e6)
    routes = shortest(fabric, *rounds.all_pairs())
    folded = simulate_rounds(rounds, rounds_on_the_wire(routes, rounds, ROCE))
    whole = simulate_rounds(rounds, rounds_on_the_wire(routes, rounds, ROCE), symmetry=False)
    assert folded.classes < whole.classes / 8
    assert folded.makespan == pytest.approx(whole.makespan, rel=1e-9)
