"""How far breadth-first broadcasts stay behind the exact optimum: ratios that a separate program found."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import pytest
from optimum_worlds import fabric_of, known_fabric, known_fabrics

from ropewalk.collectives.breadth_first import bfb_schedule, neighbours_of
from ropewalk.collectives.latency import schedule_cost
from ropewalk.collectives.optimum import all_gather, all_reduce, network_of, reduce_scatter_then_all_gather
from ropewalk.fabric import Fabric, Hypercube, Mesh, Ring, Torus
from ropewalk.sim import simulate_rounds
from ropewalk.task import lockstep

KNOWN = {known["name"]: known for known in known_fabrics()}


def _kautz(letters: int, length: int) -> Fabric:
    """Words without the same letter twice in a row; a word points to those that continue it by a letter."""
    words = [word for word in product(range(letters), repeat=length) if all(a != b for a, b in pairwise(word))]
    place = {word: at for at, word in enumerate(words)}
    links = [
        (place[word], place[(*word[1:], letter)], Fraction(1))
        for word in words
        for letter in range(letters)
        if letter != word[-1]
    ]
    return fabric_of(len(words), 0, links, "kautz")


def _generalised_kautz(degree: int, hosts: int) -> Fabric:
    """Imase and Itoh: host u points to -(u d + a) mod N for a = 1 … d."""
    links = [(u, -(u * degree + a) % hosts, Fraction(1)) for u in range(hosts) for a in range(1, degree + 1)]
    return fabric_of(hosts, 0, [link for link in links if link[0] != link[1]], "generalised kautz")


RATIOS: dict[str, tuple[Fabric, Fraction]] = {
    "ring 8": (Ring(8).build(), Fraction(1)),
    "torus 3x3": (Torus((3, 3)).build(), Fraction(1)),
    "torus 4x4": (Torus((4, 4)).build(), Fraction(1)),
    "torus 3x4": (Torus((3, 4)).build(), Fraction(1)),
    "torus 2x6": (Torus((2, 6)).build(), Fraction(1)),
    "torus 5x3x2": (Torus((5, 3, 2)).build(), Fraction(1)),
    "hypercube 4": (Hypercube(4).build(), Fraction(1)),
    "mesh 3x3": (Mesh((3, 3)).build(), Fraction(1)),
    "mesh 4x4": (Mesh((4, 4)).build(), Fraction(1)),
    "kautz(4,2)": (_kautz(5, 2), Fraction(20, 19)),
    "generalised kautz(4,20)": (_generalised_kautz(4, 20), Fraction(20, 19)),
    "kautz(2,3)": (known_fabric(KNOWN["kautz(2,3)"]), Fraction(14, 11)),
    "dgx1v": (known_fabric(KNOWN["dgx1v"]), Fraction(9, 7)),
}


@pytest.mark.parametrize(("fabric", "ratio"), RATIOS.values(), ids=RATIOS)
def test_breadth_first_all_gather_is_this_much_slower_than_the_optimum(fabric, ratio):
    network = network_of(fabric)
    schedule = bfb_schedule(network, "allgather")
    schedule.program.check()
    schedule.routes.check()
    assert len(schedule.program.rounds) == neighbours_of(network).diameter
    assert all_gather(network).algbw / schedule.promise == ratio


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN.values() if len(k["compute"]) <= 32])
def test_breadth_first_all_reduce_is_proved_on_every_known_fabric_and_never_beats_its_optimum(known):
    network = network_of(known_fabric(known))
    schedule = bfb_schedule(network, "allreduce")
    schedule.program.check()
    schedule.routes.check()
    assert len(schedule.program.rounds) == 2 * neighbours_of(network).diameter
    assert schedule.promise <= reduce_scatter_then_all_gather(network).algbw <= all_reduce(network).algbw


@pytest.mark.parametrize("collective", ["allgather", "reducescatter", "allreduce"])
@pytest.mark.parametrize("fabric", [Torus((3, 4)), Hypercube(3), Ring(5)], ids=lambda fabric: fabric.expression)
def test_the_simulated_time_is_the_line_that_was_counted(fabric, collective):
    network = network_of(fabric.build())
    schedule = bfb_schedule(network, collective)
    cost = schedule_cost(schedule)
    for size in (1e3, 1e8):
        trace = simulate_rounds(lockstep(schedule.program, size, 1e-5, schedule.hosts), schedule.routes)
        assert trace.makespan == pytest.approx(cost.seconds(size, 1e-5), rel=1e-9)
