from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from forest_loads import link_loads, prove_loads
from forest_worlds import GROWERS, depth_of, proved_schedule
from optimum_worlds import both_ways, fabric_of, known_fabric, known_fabrics

from ropewalk.collectives.forest import (
    AllReduceForest,
    Branch,
    Forest,
    Tree,
    all_gather_forest,
    broadcast_forest,
    reduce_forest,
)
from ropewalk.collectives.forest.halves import halves_of
from ropewalk.collectives.forest.layout import layout_of
from ropewalk.collectives.forest.program import forest_schedule
from ropewalk.collectives.forest.shifts import shifts_of
from ropewalk.collectives.forest.strands import strands_of
from ropewalk.collectives.forest.symmetric import backwards, symmetric_forest
from ropewalk.collectives.forest.ways import ways_of
from ropewalk.collectives.optimum import network_of
from ropewalk.errors import ProgramError, ProofError
from ropewalk.fabric import Dgx, Ring, Torus

LINE = both_ways([(0, 1, 1), (1, 2, 1)])
STAR = both_ways([(0, 3, 1), (1, 3, 1), (2, 3, 1)])
"""Three hosts around host 3."""


def line_forest():
    return all_gather_forest(network_of(fabric_of(3, 0, LINE)))


def star_network():
    return network_of(fabric_of(4, 0, STAR), group=[0, 1, 2])


def through_the_centre(network):
    """A tree from host 0 whose two branches both pass host 3."""
    half = Fraction(1, 2)
    branches = tuple(Branch(0, child, (((0, 3, child), half),)) for child in (1, 2))
    return Forest(network, (Tree(0, half, branches, 1),))


def dgx1v():
    return known_fabric(next(known for known in known_fabrics() if known["name"] == "dgx1v"))


def sends(schedule):
    """(round, source host, destination host, adds, chunks) of every send."""
    host = schedule.hosts.tolist()
    listed = []
    for number, step in enumerate(schedule.program.rounds):
        start, ids = step.chunks()
        pattern = step.pattern
        for at in range(pattern.sends):
            ends = host[pattern.src[at]], host[pattern.dst[at]]
            listed.append((number, *ends, bool(pattern.reduces[at]), ids[start[at] : start[at + 1]].tolist()))
    return sorted(listed)


def test_a_broadcast_along_a_line_sends_segment_after_segment():
    forest = broadcast_forest(network_of(fabric_of(3, 0, LINE)), 0)
    assert sends(proved_schedule(forest, "broadcast", 2)) == [
        (0, 0, 1, False, [0]),
        (1, 0, 1, False, [1]),
        (1, 1, 2, False, [0]),
        (2, 1, 2, False, [1]),
    ]


def test_a_reduce_adds_on_the_way_to_its_root():
    forest = reduce_forest(network_of(fabric_of(3, 0, LINE)), 2)
    assert sends(proved_schedule(forest, "reduce", 1)) == [(0, 0, 1, True, [0]), (1, 1, 2, True, [0])]


def test_a_leaf_near_the_root_starts_in_the_first_round():
    forest = reduce_forest(network_of(fabric_of(3, 0, LINE)), 1)
    assert [(at, src) for at, src, *_ in sends(proved_schedule(forest, "reduce", 1))] == [(0, 0), (0, 2)]


@pytest.mark.parametrize("collective", GROWERS)
def test_segments_follow_each_other_one_round_apart(collective):
    forest = GROWERS[collective](network_of(Torus((3, 3)).build()))
    rounds = {segments: len(proved_schedule(forest, collective, segments).program.rounds) for segments in (1, 2, 7)}
    assert rounds[2] - rounds[1] == 1
    assert rounds[7] - rounds[1] == 6
    assert rounds[1] <= forest.depth


def test_in_an_all_reduce_early_segments_spread_while_late_ones_are_still_reduced():
    schedule = proved_schedule(GROWERS["allreduce"](network_of(Ring(4).build())), "allreduce", 8)
    mixed = [step for step in schedule.program.rounds if 0 < step.pattern.reduces.mean() < 1]
    assert mixed
    assert depth_of(schedule, 8) < 8


def test_the_chunks_of_a_rank_stand_together_in_proportion_to_its_shard():
    network = network_of(Ring(4).build(), group=[3, 1, 0], shards=[1, 0, 2])
    schedule = proved_schedule(all_gather_forest(network), "allgather", 3)
    program = schedule.program
    owned = program.pre(np.arange(program.chunks))
    assert schedule.hosts.tolist() == [3, 1, 0]
    third = program.chunks // 3
    assert owned[0].nonzero()[0].tolist() == list(range(third))
    assert not owned[1].any()
    assert owned[2].nonzero()[0].tolist() == list(range(third, program.chunks))


def test_chunks_are_as_few_as_the_rates_allow():
    """Two trees at rates of 2 and 1: three chunks, of which one tree sends two at a time."""
    network = network_of(fabric_of(2, 0, both_ways([(0, 1, 6)])))
    trees = tuple(Tree(0, Fraction(rate), (Branch(0, 1, (((0, 1), Fraction(rate)),)),), 1) for rate in (4, 2))
    schedule = proved_schedule(Forest(network, trees), "broadcast", 2)
    assert sends(schedule) == [
        (0, 0, 1, False, [0, 1]),
        (0, 0, 1, False, [4]),
        (1, 0, 1, False, [2, 3]),
        (1, 0, 1, False, [5]),
    ]


def test_equal_lanes_send_the_same_chunks_one_by_one():
    forest = all_gather_forest(network_of(dgx1v()))
    schedules = [proved_schedule(forest, "allgather", 2, equal_lanes=equal) for equal in (False, True)]
    heavy, even = ([chunk for *_, chunks in sends(schedule) for chunk in chunks] for schedule in schedules)
    assert sorted(heavy) == sorted(even)
    assert {len(chunks) for *_, chunks in sends(schedules[1])} == {1}
    assert schedules[0].program.lanes < schedules[1].program.lanes == schedules[1].program.chunks // 2


def test_hosts_outside_the_group_are_part_of_the_ways_only():
    schedule = proved_schedule(all_gather_forest(star_network()), "allgather", 2)
    assert schedule.hosts.tolist() == [0, 1, 2]
    assert schedule.program.ranks == 3
    assert set(schedule.routes.hops.tolist()) == {2}


@pytest.mark.parametrize("collective", GROWERS)
def test_relays_as_ranks_forward_what_they_neither_bring_nor_keep(collective):
    network = network_of(dgx1v(), group=[0, 1, 2])
    schedule = proved_schedule(GROWERS[collective](network), collective, 3, relays_as_ranks=True)
    assert schedule.hosts[:3].tolist() == [0, 1, 2]
    program = schedule.program
    every = np.arange(program.chunks)
    assert program.ranks > 3
    assert not program.pre(every)[3:].any()
    assert not program.post(every)[3:].any()
    assert (program.sent_chunks()[3:] > 0).all()
    assert set(schedule.routes.hops.tolist()) == {1}, "with every forwarding host a rank, a send crosses one link"


def test_a_relay_that_two_branches_pass_receives_once_and_sends_twice():
    schedule = proved_schedule(through_the_centre(star_network()), "broadcast", 1, relays_as_ranks=True)
    assert [send[:4] for send in sends(schedule)] == [(0, 0, 3, False), (1, 3, 1, False), (1, 3, 2, False)]


def test_a_relay_on_the_way_to_a_root_overwrites_with_the_first_and_adds_the_second():
    schedule = proved_schedule(through_the_centre(star_network().reversed()), "reduce", 1, relays_as_ranks=True)
    assert [send[:4] for send in sends(schedule)] == [(0, 1, 3, False), (1, 2, 3, True), (2, 3, 0, True)]


def test_a_branch_with_two_relays_becomes_two_lanes():
    square = both_ways([(0, 2, 3), (2, 1, 3), (0, 3, 1), (3, 1, 1)])
    forest = broadcast_forest(network_of(fabric_of(4, 0, square), group=[0, 1]), 0)
    schedule = proved_schedule(forest, "broadcast", 1, relays_as_ranks=True)
    assert forest.algbw == 4
    assert {send[1:3]: len(send[4]) for send in sends(schedule)} == {(0, 2): 3, (2, 1): 3, (0, 3): 1, (3, 1): 1}


def test_limits_of_hosts_vanish_from_the_ways_and_are_kept():
    mesh = fabric_of(3, 0, both_ways([(0, 1, 9), (1, 2, 9), (0, 2, 9)]))
    network = network_of(mesh, host_limits=[2.0, 2.0, 1.0])
    forest = all_gather_forest(network)
    for relays in (False, True):
        schedule = proved_schedule(forest, "allgather", 1, relays_as_ranks=relays)
        assert set(schedule.routes.hops.tolist()) == {1}
        assert prove_loads(schedule, forest, "allgather", relays_as_ranks=relays) == 1 / forest.algbw
    rushed = forest.scaled(Fraction(2))
    with pytest.raises(ProofError, match=r"(sending|receiving) limit of h\d is busy for 2 times"):
        prove_loads(replace(schedule, promise=rushed.algbw), rushed, "allgather", relays_as_ranks=True)


def test_parallel_links_share_the_load_by_their_bandwidth():
    """Links of 1 and 3 to a switch, of 2 and 2 from there: a quarter, a quarter and a half."""
    links = [(0, 2, 1), (0, 2, 3), (2, 1, 2), (2, 1, 2), (1, 0, 4)]
    forest = broadcast_forest(network_of(fabric_of(2, 1, links)), 0)
    schedule = proved_schedule(forest, "broadcast", 1)
    routes = schedule.routes
    paths = [routes.link[routes.link_start[at] : routes.link_start[at + 1]].tolist() for at in range(routes.paths)]
    assert list(zip(paths, routes.share.tolist(), strict=True)) == [([0, 2], 0.25), ([1, 2], 0.25), ([1, 3], 0.5)]
    ways = ways_of(routes.fabric, tuple(strands_of(forest.network, forest.trees, False)), ())
    loads = link_loads(schedule.program, schedule.hosts.tolist(), ways)
    assert loads == {0: Fraction(1, 4), 1: Fraction(3, 4), 2: Fraction(1, 2), 3: Fraction(1, 2)}


@pytest.mark.parametrize("builder", [Torus((3, 4)), Ring(5), Dgx(3, gpus=4)], ids=lambda builder: builder.expression)
@pytest.mark.parametrize("both_halves", [False, True])
def test_trees_of_one_host_and_their_images_are_laid_out_as_if_written_out(builder, both_halves):
    network = network_of(builder.build())
    first = tuple(tree for tree in all_gather_forest(network).trees if tree.root == 0)
    alike = symmetric_forest(network, shifts_of(network), first)
    forests = [alike, alike.written_out()]
    if both_halves:
        forests = [AllReduceForest(backwards(forest), forest) for forest in forests]
    collective = "allreduce" if both_halves else "allgather"
    moved, written = (layout_of(halves_of(forest, collective), False) for forest in forests)
    assert {ends: dict(ways) for ends, ways in moved.ways.items()} == {
        ends: dict(ways) for ends, ways in written.ways.items()
    }
    for name, column in vars(written.columns).items():
        assert getattr(moved.columns, name).tolist() == column.tolist(), name


def test_loads_beyond_the_promise_are_no_proof():
    forest = line_forest()
    schedule = forest_schedule(forest, "allgather")
    assert prove_loads(schedule, forest, "allgather") * forest.algbw == 1
    with pytest.raises(ProofError, match=r"link h\d->h\d.* is busy for 1.5 times as long"):
        prove_loads(schedule, forest.scaled(Fraction(3, 2)), "allgather")


def test_routes_that_are_not_the_ways_of_the_forest_are_no_proof():
    forest = line_forest()
    schedule = forest_schedule(forest, "allgather")
    turned = replace(schedule.routes, link=schedule.routes.link[::-1].copy())
    with pytest.raises(ProofError, match="are not its ways"):
        prove_loads(replace(schedule, routes=turned), forest, "allgather")
    fewer = forest_schedule(broadcast_forest(forest.network, 0), "broadcast")
    with pytest.raises(ProofError, match="pairs of hosts"):
        prove_loads(replace(schedule, routes=fewer.routes), forest, "allgather")


@pytest.mark.parametrize(
    ("made_for", "asked_for", "message"),
    [
        ("allgather", "allreduce", "a forest that spreads is no all-reduce"),
        ("allgather", "reducescatter", "a forest that spreads is no reduce-scatter"),
        ("reduce", "broadcast", "a forest that reduces is no broadcast"),
        ("allreduce", "allgather", "a forest that reduces and spreads is no all-gather"),
        ("allgather", "broadcast", "this forest has 3: give a forest of one root"),
        ("broadcast", "allgather", "host 0 has 1 of 3 parts"),
        ("allgather", "alltoall", "does not support 'alltoall': choose allgather, reducescatter"),
    ],
)
def test_a_forest_of_another_collective_is_refused(made_for, asked_for, message):
    forest = GROWERS[made_for](network_of(fabric_of(3, 0, LINE)))
    with pytest.raises(ProgramError, match=message):
        forest_schedule(forest, asked_for)


def test_no_segments_are_refused():
    with pytest.raises(ProgramError, match="0 segments"):
        forest_schedule(line_forest(), "allgather", 0)
