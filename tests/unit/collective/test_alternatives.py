"""Alternatives on the same fabric and group: all proved, none above the optimum; and the choice among them by size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ropewalk.collective.alternatives import alternatives
from ropewalk.collective.blocks import blocks_of
from ropewalk.collective.breadth_first import bfb_schedule
from ropewalk.collective.bruck import bruck_all_gather, bruck_all_reduce, bruck_reduce_scatter
from ropewalk.collective.chooser import Chooser, choose
from ropewalk.collective.optimum import OPTIMA, ROOTED_OPTIMA, network_of
from ropewalk.collective.spread_routes import spread_routes
from ropewalk.collective.trees import binomial_all_reduce
from ropewalk.errors import ProgramError
from ropewalk.fabric import Circulant, Dgx, FabricDraft, FatTree, IdealSwitch, LeafSpine, Mesh, Ring, Torus

COLLECTIVES = [*OPTIMA, *ROOTED_OPTIMA]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(
    ("fabric", "options"),
    [
        (Dgx(2, gpus=4), {}),
        (Torus((3, 3)), {}),
        (FatTree(4), {"group": [0, 5, 3, 9, 15, 2]}),
        (Mesh((2, 3)), {"host_limits": [2e9] * 6}),
        (IdealSwitch(5), {}),
        (Circulant(8, (1, 3)), {}),
    ],
    ids=lambda value: getattr(value, "expression", ""),
)
def test_all_alternatives_are_proved_and_none_beats_the_optimum(fabric, options, collective):
    network = network_of(fabric.build(), **options)
    optimum = OPTIMA[collective](network) if collective in OPTIMA else ROOTED_OPTIMA[collective](network, 0)
    built = {name: build() for name, build in alternatives(network, collective).items()}
    assert "ring" in built or collective == "alltoall"
    for name, schedule in built.items():
        schedule.program.check()
        schedule.routes.check()
        assert schedule.name == name
        assert schedule.hosts.tolist() == network.members.tolist()
        assert schedule.promise <= optimum.algbw


def test_what_needs_a_power_of_two_is_offered_only_then():
    four, five = (alternatives(network_of(IdealSwitch(n).build()), "allgather") for n in (4, 5))
    assert set(four) - set(five) == {"halving-doubling"}


def test_a_broadcast_starts_at_the_root_that_was_asked_for():
    network = network_of(Ring(5).build(), group=[4, 1, 3])
    for schedule in (build() for build in alternatives(network, "broadcast", root=3).values()):
        pre = schedule.program.pre(np.arange(schedule.program.chunks))
        assert pre.any(axis=1).tolist() == [False, False, True]


def test_hierarchies_of_a_group_follow_the_switches_of_its_members():
    group = [0, 4, 1, 5]
    assert blocks_of(network_of(LeafSpine(2, 2, 4).build(), group=group)).tolist() == [[0, 2], [1, 3]]
    assert blocks_of(network_of(LeafSpine(2, 2, 4).build(), group=[0, 4, 1])) is None


@pytest.mark.parametrize(
    ("collective", "options", "message"),
    [("gossip", {}, "choose allreduce"), ("allgather", {"shards": [1, 2, 3]}, "leave the shards out")],
)
def test_what_has_no_alternatives_is_refused_with_a_remedy(collective, options, message):
    with pytest.raises(ProgramError, match=message):
        alternatives(network_of(Ring(3).build(), **options), collective)


def test_bytes_of_a_pair_prefer_the_wider_of_two_short_ways():
    draft = FabricDraft("two ways")
    draft.add_hosts(["a", "b"])
    draft.add_switches(["s", "t"], 1)
    draft.add_links([0, 2, 0, 3], [2, 1, 3, 1], [3e9, 9e9, 1e9, 9e9])
    routes = spread_routes(draft.freeze(), np.array([0], np.int32), np.array([1], np.int32))
    assert sorted(routes.share.tolist()) == [0.25, 0.75]


@pytest.mark.parametrize("ranks", [2, 3, 5, 6, 7, 8, 13, 16, 17, 33])
def test_bruck_takes_log_n_rounds_and_sends_every_block_once(ranks):
    rounds = (ranks - 1).bit_length()
    for program, halves in (
        (bruck_all_gather(ranks), 1),
        (bruck_reduce_scatter(ranks), 1),
        (bruck_all_reduce(ranks), 2),
    ):
        program.check()
        assert len(program.rounds) == halves * rounds
        assert (program.sent_chunks() == halves * (ranks - 1)).all()


@pytest.mark.parametrize("ranks", [2, 3, 8, 11])
def test_a_binomial_all_reduce_goes_up_and_down_one_tree(ranks):
    program = binomial_all_reduce(ranks)
    program.check()
    assert len(program.rounds) == 2 * (ranks - 1).bit_length()


def _chooser(start_up_s: float = 1e-5) -> Chooser:
    network = network_of(Torus((3, 3), bandwidth=10e9).build())
    candidates = alternatives(network, "allreduce")
    return Chooser({**candidates, "breadth-first": lambda: bfb_schedule(network, "allreduce")}, start_up_s)


def test_the_choice_is_never_slower_than_any_candidate():
    chooser = _chooser()
    for size in [0.0, *10.0 ** np.arange(12)]:
        chosen = chooser.choose(size)
        assert chosen.seconds == min(chooser.seconds(size).values())
        assert chosen.schedule.name == chosen.name


def test_larger_buffers_never_take_less_time_and_never_more_seconds_per_byte():
    chooser = _chooser()
    table = chooser.table(list(10.0 ** np.arange(1, 12)))
    seconds = [row[2] for row in table]
    assert seconds == sorted(seconds)
    slopes = [chooser.costs[name].seconds_per_byte for _, name, _ in table]
    assert slopes == sorted(slopes, reverse=True)


def test_stretches_are_where_the_choice_changes():
    chooser = _chooser()
    stretches = chooser.stretches()
    assert stretches[0].from_bytes == 0.0
    assert len(stretches) > 1
    ends = [stretch.from_bytes for stretch in stretches[1:]]
    assert ends == sorted(set(ends))
    for stretch, end in zip(stretches, [*ends, 4 * ends[-1]], strict=True):
        middle = (stretch.from_bytes + end) / 2
        assert chooser.seconds(middle)[stretch.name] == pytest.approx(chooser.choose(middle).seconds, rel=1e-12)


def test_where_starting_up_costs_nothing_bandwidth_decides_from_the_first_byte():
    chooser = _chooser(0.0)
    (only,) = chooser.stretches()
    assert chooser.costs[only.name].seconds_per_byte == min(cost.seconds_per_byte for cost in chooser.costs.values())


def test_small_buffers_take_few_rounds_and_large_ones_many_links():
    network = network_of(Ring(8, bandwidth=1e9).build())
    candidates = {"breadth-first": lambda: bfb_schedule(network, "allgather"), **alternatives(network, "allgather")}
    small, large = (choose(candidates, size, 1e-6) for size in (8.0, 8e9))
    assert len(small.schedule.program.rounds) < len(large.schedule.program.rounds)
    assert large.schedule.promise == Fraction(16, 7) * 10**9


def test_a_choice_among_nothing_is_refused():
    with pytest.raises(ProgramError, match="give at least one"):
        Chooser({}, 1e-6)
    with pytest.raises(ProgramError, match="give 0 s or more"):
        Chooser({"breadth-first": lambda: bfb_schedule(network_of(Ring(3).build()), "allgather")}, -1.0)
