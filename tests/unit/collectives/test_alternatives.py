"""Alternatives on the same fabric and group: all proved, none above the optimum; and the choice among them by size."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives.alternatives import alternatives
from ropewalk.collectives.blocks import blocks_of
from ropewalk.collectives.bruck import bruck_all_gather, bruck_all_reduce, bruck_reduce_scatter
from ropewalk.collectives.optimum import OPTIMA, ROOTED_OPTIMA, network_of
from ropewalk.collectives.pat import pat_all_gather, pat_reduce_scatter
from ropewalk.collectives.spread_routes import spread_routes
from ropewalk.collectives.trees import binomial_all_reduce
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


@pytest.mark.parametrize("ranks", [2, 3, 5, 6, 8, 13, 16, 33])
def test_pat_takes_log_n_rounds_sends_every_block_once_and_little_of_it_far(ranks):
    for program in (pat_all_gather(ranks), pat_reduce_scatter(ranks)):
        program.check()
        assert len(program.rounds) == (ranks - 1).bit_length()
        assert (program.sent_chunks() == ranks - 1).all()
    blocks = [step.pattern.chunks[0] for step in pat_all_gather(ranks).rounds]
    assert blocks[0] == 1
    assert blocks[-1] == ranks // 2


@pytest.mark.parametrize("ranks", [2, 3, 8, 11])
def test_a_binomial_all_reduce_goes_up_and_down_one_tree(ranks):
    program = binomial_all_reduce(ranks)
    program.check()
    assert len(program.rounds) == 2 * (ranks - 1).bit_length()
