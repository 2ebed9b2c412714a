"""Cycles visit every host once, along edges of the torus, and no two of them share an edge."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ropewalk.collectives import hamiltonian, hamiltonian_cycles
from ropewalk.collectives.torus_cycles import two_cycles
from ropewalk.errors import ProgramError


def edges_of(order: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in zip(order.tolist(), np.roll(order, -1).tolist(), strict=True)}


def assert_edge_disjoint_hamiltonian(shape: tuple[int, ...], cycles: list[np.ndarray]) -> None:
    hosts = math.prod(shape)
    sides = np.array(shape)
    seen: set[frozenset[int]] = set()
    for order in cycles:
        assert np.array_equal(np.sort(order), np.arange(hosts))
        place = np.stack(np.unravel_index(order, shape), axis=1)
        step = (np.roll(place, -1, axis=0) - place) % sides
        assert (np.count_nonzero(step, axis=1) == 1).all()
        assert ((step == 0) | (step == 1) | (step == sides - 1)).all()
        edges = edges_of(order)
        assert len(edges) == (hosts if hosts > 2 else 1)
        assert not edges & seen
        seen |= edges


def expected_cycles(shape: tuple[int, ...]) -> int:
    return max(1, sum(side > 2 for side in shape) + shape.count(2) // 2)


def test_every_two_dimensional_torus_up_to_thirteen_decomposes():
    for shape in itertools.product(range(3, 14), repeat=2):
        cycles = hamiltonian_cycles(shape)
        assert len(cycles) == 2
        assert_edge_disjoint_hamiltonian(shape, cycles)


def test_every_three_dimensional_torus_up_to_seven_decomposes_whatever_its_sides():
    for shape in itertools.product(range(1, 8), repeat=3):
        if math.prod(shape) > 1:
            cycles = hamiltonian_cycles(shape)
            assert len(cycles) == expected_cycles(shape)
            assert_edge_disjoint_hamiltonian(shape, cycles)


@pytest.mark.parametrize(
    "shape",
    [(n,) * k for k in (1, 2, 3, 4) for n in (3, 4, 5, 6)]
    + [(3,) * 5, (4,) * 5, (3, 3, 12), (12, 3, 3), (2, 3, 4, 5, 3), (16, 16), (9, 16), (8, 8, 8), (2,) * 6, (2,) * 7],
)
def test_tori_decompose_into_as_many_cycles_as_their_degree_allows(shape):
    cycles = hamiltonian_cycles(shape)
    assert len(cycles) == expected_cycles(shape)
    assert_edge_disjoint_hamiltonian(shape, cycles)


@pytest.mark.parametrize("n", range(3, 10))
def test_the_square_torus_has_the_two_gray_codes(n):
    x, y = np.divmod(np.arange(n * n), n)
    first = x * n + (y - x) % n
    second = (y - x) % n * n + x
    drawn = [edges_of(order) for order in two_cycles(n, n)]
    gray = [edges_of(first), edges_of(second)]
    # The same pair up to a mirror image of the columns.
    mirrored = [edges_of(order // n * n + (-order) % n) for order in (first, second)]
    assert all(edges in drawn for edges in gray) or all(edges in drawn for edges in mirrored)


def test_two_hosts_have_the_cycle_there_and_back():
    assert [order.tolist() for order in hamiltonian_cycles((1, 2))] == [[0, 1]]


def test_one_host_has_no_cycle():
    with pytest.raises(ProgramError, match="give it at least 2 hosts"):
        hamiltonian_cycles((1, 1))


def test_callers_cannot_spoil_the_remembered_cycles():
    hamiltonian_cycles((3, 3))[0][:] = 0
    assert_edge_disjoint_hamiltonian((3, 3), hamiltonian_cycles((3, 3)))


def test_fewer_cycles_remain_where_layers_cannot_be_sewn(monkeypatch):
    monkeypatch.setattr(hamiltonian, "_sew_all", lambda thread, cycles, layers: None if cycles else [thread])
    cycles = list(hamiltonian._cycles_of.__wrapped__((3, 4, 5)))
    assert len(cycles) == 2
    assert_edge_disjoint_hamiltonian((3, 4, 5), cycles)
