"""States of models that are no chains."""

import numpy as np
import pytest
from antichains import antichain_profile

from ropewalk.errors import WorkloadError
from ropewalk.pipeline.profile import profile_of
from ropewalk.workload.opaque import Measured
from ropewalk.workload.workload import Layer, Workload


def model(*reads: tuple[int, ...]) -> Workload:
    """Layer i takes i+1 seconds forward, hands on 10^i elements, and reads these."""
    layers = tuple(
        Layer(f"layer {number}", (Measured(number + 1.0, 1.0, 1, 4.0),), 10**number, inputs)
        for number, inputs in enumerate(reads)
    )
    return Workload("branches", layers, 1)


def branches(count: int, length: int) -> Workload:
    """A source, `count` chains of `length` layers side by side, and a layer that reads all their ends."""
    reads: list[tuple[int, ...]] = [()]
    for branch in range(count):
        reads += [(0 if place == 0 else branch * length + place,) for place in range(length)]
    return model(*reads, tuple(1 + branch * length + length - 1 for branch in range(count)))


def test_a_chain_has_a_state_for_each_layer():
    chain = model((), (0,), (1,), (2,))
    states, layers = antichain_profile(chain).profile, profile_of(chain)
    assert states.names == layers.names
    assert states.forward_s.tolist() == layers.forward_s.tolist()
    assert [states.handed_on(k) for k in range(4)] == [layers.handed_on(k) for k in range(4)] == [4, 40, 400, 0]


def test_two_branches_have_a_state_for_every_pair_of_places_in_them():
    assert antichain_profile(branches(2, 3)).profile.states == 4 * 4 + 1


def test_a_state_costs_all_that_it_needs():
    diamond = antichain_profile(model((), (0,), (0,), (1, 2)))
    costs = dict(zip(diamond.profile.names, diamond.profile.forward_s[1:].tolist(), strict=True))
    assert costs == {"layer 0": 1, "layer 1": 3, "layer 2": 4, "layer 1 + layer 2": 6, "layer 3": 10}


def test_states_come_behind_those_they_contain():
    diamond = antichain_profile(branches(2, 2))
    below, above = np.nonzero(diamond.contains)
    assert (below < above).all()
    assert diamond.contains[0, 1:].all()
    assert diamond.contains[:-1, -1].all()


def test_what_one_branch_still_reads_crosses_the_cut_with_the_other_branch():
    diamond = antichain_profile(model((), (0,), (0,), (1, 2))).profile
    crossing = dict(zip(diamond.names, (diamond.crossing_bytes / 4).tolist(), strict=True))
    assert crossing["layer 1"] == 10 + 1  # layer 2 has yet to read layer 0
    assert crossing["layer 1 + layer 2"] == 100 + 10 + 1  # the planners count layer 0 here still


def test_many_branches_are_refused_with_a_way_out():
    with pytest.raises(WorkloadError, match=r"more than 4096 sets of layers.*merge the layers of parallel branches"):
        antichain_profile(branches(12, 3))
