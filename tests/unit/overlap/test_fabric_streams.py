"""Gradients streamed through collectives on a fabric: closed forms of rings and trees, forests with their own paths."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives.fused import streamed_program
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.collectives.ring import ring_all_reduce
from ropewalk.fabric import IdealSwitch, Torus
from ropewalk.overlap.fabric_streams import complete_s, fabric_streams, pieces_of
from ropewalk.overlap.tensors import from_layers
from ropewalk.routing import shortest
from ropewalk.task import lockstep


def layers(sizes):
    return from_layers(sizes, backward_s=[0.0] * len(sizes), forward_s=[0.0] * len(sizes))


@pytest.mark.parametrize("mixer", [FREE, Mixer(0.5)])
def test_pieces_one_after_the_other_are_complete_as_the_ring_of_each_says(mixer):
    ring = ring_all_reduce([[0, 1, 2, 3]])
    program = streamed_program(ring, [(0, 1), (1, 3)], apart=6)
    fabric = IdealSwitch(4, bandwidth=2.0).build()
    routes = shortest(fabric, *lockstep(program, 1.0).all_pairs())
    found = complete_s(program, routes, 16.0, 0.1, mixer).max(axis=1)
    each = 6 * 0.1 + 6 * np.array([1.0, 3.0]) / 2.0 + (0.0 if mixer.free else 3 * np.array([1.0, 3.0]) / 0.5)
    np.testing.assert_allclose(found, np.cumsum(each), rtol=1e-9)


def test_what_a_root_adds_last_is_complete_when_it_is_added():
    (tree,) = fabric_streams(layers([8.0]), IdealSwitch(2, bandwidth=1.0).build(), mixer=Mixer(4.0), names=["binomial"])
    # One send up, added at half the size a second, one send down: the leaf is the last to have it.
    assert tree.whole_s == pytest.approx(8.0 + 2.0 + 8.0)


def test_trees_gain_by_reducing_while_they_broadcast():
    found = {one.collective: one for one in fabric_streams(layers([1.0] * 6), IdealSwitch(8, bandwidth=1.0).build())}
    assert found["binomial"].gain > 0.3 > 0.05 > abs(found["ring"].gain)
    for one in found.values():
        assert list(one.complete_s) == sorted(one.complete_s)


@pytest.mark.parametrize("name", ["forest", "topoadopt"])
def test_forests_stream_along_their_own_paths(name):
    (forest,) = fabric_streams(layers([1.0, 2.0, 3.0]), Torus((2, 2), bandwidth=1.0).build(), names=[name])
    assert forest.complete_s[0] < forest.complete_s[-1] == forest.streamed_s


def test_collectives_that_do_not_apply_are_left_out():
    fabric = IdealSwitch(3, bandwidth=1.0).build()
    assert [one.collective for one in fabric_streams(layers([1.0]), fabric, names=["xor", "ring"])] == ["ring"]


def test_pieces_of_a_large_tensor_are_one_tensor():
    numbers = [tensor for tensor, _ in pieces_of(layers([1.0, 30.0, 1.0]))]
    assert sorted(set(numbers)) == list(range(numbers[-1] + 1))
    assert numbers.count(1) > 3
