"""Gradients streamed through collectives on a fabric: closed forms of rings and trees, forests with their own paths."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives.fused import streamed_program
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.collectives.ring import ring_all_reduce
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import ProgramError
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
    made = Schedule("ring", program, np.arange(4, dtype=np.int32), routes)
    found = complete_s(made, 16.0, 0.1, mixer).max(axis=1)
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


def test_collectives_that_do_not_apply_are_left_out_unless_they_are_named():
    fabric = Torus((3, 2), bandwidth=1.0).build()
    assert "in-network" not in {one.collective for one in fabric_streams(layers([1.0]), fabric)}
    with pytest.raises(ProgramError, match="no tree of switches"):
        fabric_streams(layers([1.0]), fabric, names=["ring", "in-network"])
    with pytest.raises(ProgramError, match="there is no collective 'rings': did you mean ring"):
        fabric_streams(layers([1.0]), fabric, names=["rings"])


def test_a_named_collective_of_too_many_sends_is_refused(monkeypatch):
    monkeypatch.setattr("ropewalk.overlap.fabric_streams.MOST_SENDS", 50)
    # A forest of four trees is 24 sends at least, so that it is not even made.
    monkeypatch.setattr(type(COLLECTIVES["forest"]), "schedule", None)
    fabric = IdealSwitch(4, bandwidth=1.0).build()
    assert "ring" not in {one.collective for one in fabric_streams(layers([1.0] * 6), fabric)}
    with pytest.raises(ProgramError, match="ring on 4 GPUs is more than 50 sends"):
        fabric_streams(layers([1.0] * 6), fabric, names=["ring"])
    with pytest.raises(ProgramError, match="forest on 4 GPUs"):
        fabric_streams(layers([1.0] * 6), fabric, names=["forest"])


def test_switches_that_add_take_the_buffer_once_up_and_once_down_whatever_ranks_add():
    fabric = IdealSwitch(4, bandwidth=2.0).build()
    (found,) = fabric_streams(layers([16.0]), fabric, mixer=Mixer(0.5), names=["in-network"])
    # The whole: 16 segments up and down one switch, 17 segment times of 16 / 16 bytes at 2 bytes/s.
    assert found.whole_s == pytest.approx(17 * (16.0 / 16) / 2.0, rel=1e-2)
    # Pieces follow each other up and down the tree, so only the first segment of the first piece is alone on the wire.
    assert 16.0 / 2.0 < found.streamed_s <= found.whole_s * (1 + 1e-9)


def test_pieces_of_a_large_tensor_are_one_tensor():
    numbers = [tensor for tensor, _ in pieces_of(layers([1.0, 30.0, 1.0]))]
    assert sorted(set(numbers)) == list(range(numbers[-1] + 1))
    assert numbers.count(1) > 3
