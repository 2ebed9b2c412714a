"""Which collective is safe under which split of its ranks over leafs, exhaustively where the space is small."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from contention_theory import contended_rounds, is_injective, is_leaf_wise, uncontended
from job_exchanges import EXCHANGES

from ropewalk.collectives.exchange import shift_all_to_all, xor_all_to_all
from ropewalk.collectives.folding import folded_halving_doubling, folding
from ropewalk.collectives.halving_doubling import halving_doubling
from ropewalk.errors import ClusterError, ProgramError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.collectives import job_group, pipeline_sends, program_of
from ropewalk.tenancy.contention import Counterexample, Proof, RankSwitches, contention_free


def all_uncontended(seats: RankSwitches, destinations: np.ndarray) -> np.ndarray:
    """The exact condition for many permutations at once: rows of destinations of ranks 0, 1, …"""
    leaf_of_dst = seats.leaf[destinations]
    key = seats.spine * (seats.leaf.max() + 1) + leaf_of_dst
    rank = np.arange(len(seats.leaf))
    key = np.where(leaf_of_dst == seats.leaf, -1 - rank, key)  # flows under one leaf meet nobody
    key.sort(axis=1)
    return (np.diff(key, axis=1) != 0).all(axis=1)


def every_permutation(ranks: int) -> np.ndarray:
    return np.array(list(permutations(range(ranks))), np.int8)


def test_the_exact_condition_is_what_the_loads_of_links_say():
    seats = RankSwitches.of_split(2, 2, 2)
    rank = np.arange(6)
    table = every_permutation(6)
    quick = all_uncontended(seats, table)
    assert quick.tolist() == [uncontended(seats, rank, row) for row in table]
    assert quick.tolist() == [is_injective(seats, rank, row) for row in table]


@pytest.mark.parametrize("split", [(3, 3), (4, 3), (5, 2), (4, 4)])
def test_two_leafs_are_safe_for_every_permutation_and_every_split(split):
    assert all_uncontended(RankSwitches.of_split(*split), every_permutation(sum(split))).all()


def test_of_the_permutations_of_three_leafs_of_two_two_thirds_are_safe():
    assert all_uncontended(RankSwitches.of_split(2, 2, 2), every_permutation(6)).mean() == pytest.approx(2 / 3)


def test_of_the_permutations_of_three_leafs_of_three_less_than_half_are_safe():
    safe = all_uncontended(RankSwitches.of_split(3, 3, 3), every_permutation(9))
    assert safe.sum() * 70 == safe.size * 31  # 44.3 %


def test_arbitrary_permutations_of_larger_worlds_are_rarely_safe():
    rng = np.random.default_rng(1)
    sixteen = np.array([rng.permutation(16) for _ in range(20_000)])
    # Four standard deviations of 20,000 trials around 7.0 %.
    assert all_uncontended(RankSwitches.of_split(4, 4, 4, 4), sixteen).mean() == pytest.approx(0.070, abs=0.0075)
    sixty_four = np.array([rng.permutation(64) for _ in range(5_000)])
    assert not all_uncontended(RankSwitches.of_split(*[8] * 8), sixty_four).any()


def test_leaf_wise_is_sufficient_and_not_necessary():
    seats = RankSwitches.of_split(2, 2, 2)
    rank = np.arange(6)
    for row in every_permutation(6):
        if is_leaf_wise(seats, rank, row):
            assert uncontended(seats, rank, row)
    shift = (rank + 1) % 6
    assert is_leaf_wise(seats, rank, shift)
    by_three = (rank + 3) % 6  # leaf 0 feeds leafs 1 and 2
    assert uncontended(seats, rank, by_three)
    assert not is_leaf_wise(seats, rank, by_three)


@pytest.mark.parametrize("split", [(4, 4), (5, 3, 2), (1, 2, 3, 4), (7, 1, 1)])
def test_a_ring_in_leaf_order_never_collides_whatever_the_leafs_hold(split):
    seats = RankSwitches.of_split(*split)
    assert isinstance(contention_free(seats, "ring"), Proof)
    assert isinstance(contention_free(seats, "double-ring"), Proof)


def test_a_ring_in_random_order_collides_nearly_always():
    rng = np.random.default_rng(7)
    seats = RankSwitches.of_split(4, 4, 4, 4)
    orders = [rng.permutation(16) for _ in range(2_000)]
    contended = sum(not uncontended(seats, order, np.roll(order, -1)) for order in orders)
    # 1924 of 2000 with a standard deviation of 8.6 trials.
    assert abs(contended - 1924) < 40


@pytest.mark.parametrize("split", [(4, 4), (4, 8, 4), (8, 4, 4, 12)])
def test_a_hierarchical_ring_never_collides_however_many_servers_a_leaf_has(split):
    program = program_of("hierarchical-ring", job_group(split, 4))
    program.check()
    assert isinstance(contention_free(RankSwitches.of_split(*split), program), Proof)


@pytest.mark.parametrize(
    ("split", "contended"), [((6, 6, 4), 2), ((8, 4, 4), 1), ((4, 8, 4), 2), ((12, 4), 0), ((4, 4, 4, 4), 0)]
)
def test_rounds_of_halving_that_collide(split, contended):
    halving = halving_doubling(16).reduce_scatter("halving")
    assert len(halving.rounds) == 4
    assert contended_rounds(RankSwitches.of_split(*split), halving) == contended


@pytest.mark.parametrize(("split", "contended"), [((6, 6, 4), 10), ((4, 4, 4, 4), 0), ((8, 8), 0), ((2,) * 8, 0)])
def test_rounds_of_an_xor_all_to_all_that_collide(split, contended):
    program = xor_all_to_all(16)
    seats = RankSwitches.of_split(*split)
    assert contended_rounds(seats, program) == contended
    if not contended:
        assert all(is_leaf_wise(seats, pattern.src, pattern.dst) for pattern in program.patterns)


@pytest.mark.parametrize(("split", "contended"), [((4, 4, 2), 3), ((3, 3, 2), 2), ((6, 6, 4), 5)])
def test_rounds_of_a_shifted_all_to_all_that_collide(split, contended):
    assert contended_rounds(RankSwitches.of_split(*split), shift_all_to_all(sum(split))) == contended


@pytest.mark.parametrize("leafs", range(2, 9))
@pytest.mark.parametrize("each", range(1, 9))
def test_a_shifted_all_to_all_is_safe_on_equal_leafs_of_any_size(leafs, each):
    seats = RankSwitches.of_split(*[each] * leafs)
    rank = np.arange(leafs * each)
    assert all(uncontended(seats, rank, (rank + k) % len(rank)) for k in range(1, len(rank)))


@pytest.mark.parametrize("leafs", range(2, 6))
@pytest.mark.parametrize("each", range(1, 6))
def test_pipelines_on_equal_leafs(leafs, each):
    group = job_group((each,) * leafs)
    seats = RankSwitches.of_split(*group.leafs)
    for stage in range(1, group.ranks):
        forward = pipeline_sends(stage)(group)
        assert isinstance(contention_free(seats, forward), Proof)
        if stage % each == 0:
            assert isinstance(contention_free(seats, pipeline_sends(stage, both_ways=True)(group)), Proof)


def test_forward_and_backward_at_once_collide_where_stages_are_not_whole_leafs():
    both = pipeline_sends(4, both_ways=True)(job_group((4, 2, 2)))
    both.check()
    assert isinstance(contention_free(RankSwitches.of_split(4, 2, 2), both), Counterexample)
    # Equal leafs alone are not enough: the first and the last stage load their NICs once, the link between twice.
    both = pipeline_sends(3, both_ways=True)(job_group((5, 5, 5)))
    assert isinstance(contention_free(RankSwitches.of_split(5, 5, 5), both), Counterexample)


def test_links_are_compared_with_nics_that_send_twice():
    seats = RankSwitches.of_split(1, 2, 3)
    proof = contention_free(seats, "double-ring")
    assert isinstance(proof, Proof)
    assert proof.busiest_link == 2


@pytest.mark.parametrize("split", [(6, 6), (12, 12), (6, 6, 6, 6), (3, 3)])
def test_folding_under_the_leaf_keeps_halving_and_doubling_apart(split):
    program = folded_halving_doubling(split)
    program.check()
    seats = RankSwitches.of_split(*split)
    extra, partner = folding(split)
    assert (seats.leaf[extra] == seats.leaf[partner]).all()
    assert isinstance(contention_free(seats, program), Proof)


def test_three_leafs_of_sixteen_cannot_fold_to_equal_powers_of_two_and_collide():
    program = folded_halving_doubling((16, 16, 16))
    program.check()
    assert isinstance(contention_free(RankSwitches.of_split(16, 16, 16), program), Counterexample)


def test_leafs_of_three_have_too_few_partners_to_fold():
    with pytest.raises(ProgramError, match="use a ring"):
        folding([3] * 5)


def test_a_counterexample_names_round_link_and_flows():
    found = contention_free(RankSwitches.of_split(4, 4, 2), "all-to-all")
    assert isinstance(found, Counterexample)
    assert (found.round, found.direction, found.link) == (4, "down", (1, 1))
    assert found.flows == ((1, 6), (9, 4))
    assert (found.link_load, found.nic_load) == (2, 1)


def test_uplinks_can_only_collide_where_two_gpus_of_a_leaf_share_a_spine():
    shared = RankSwitches(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))
    found = contention_free(shared, shift_all_to_all(4))
    assert isinstance(found, Counterexample)
    assert found.direction == "up"
    assert isinstance(contention_free(RankSwitches.of_split(2, 2), shift_all_to_all(4)), Proof)


def test_every_collective_by_name_does_what_it_promises():
    for name in EXCHANGES:
        program_of(name, job_group((4, 4), 2)).check()
        assert isinstance(contention_free(RankSwitches.of_split(4, 4), name, ranks_per_server=2), Proof)


def test_an_allocation_is_proved_by_its_own_leafs_and_spines():
    gpus = tuple(range(8))
    spines = (5, 2, 5, 2, 5, 2, 5, 2)
    leafs = (0, 0, 1, 1, 2, 2, 3, 3)
    links = tuple((leaf, spine) for leaf in range(4) for spine in (5, 2))
    job = Allocation("a", gpus, "clos", (0, 1, 2, 3), (5, 2), links, spines, leafs)
    assert isinstance(contention_free(job, "all-to-all"), Proof)


def test_what_cannot_be_judged_is_refused():
    with pytest.raises(ClusterError, match="make the program for the job"):
        contention_free(RankSwitches.of_split(2, 2), program_of("ring", job_group((4, 4))))
    with pytest.raises(ClusterError, match="no collective 'rign'"):
        contention_free(RankSwitches.of_split(2, 2), "rign")
    with pytest.raises(ClusterError, match="ranks_per_server"):
        contention_free(RankSwitches.of_split(2, 2), "hierarchical-ring")
    lost = RankSwitches(np.array([0, 0, 1, 1]), np.array([-1, -1, -1, -1]))
    with pytest.raises(ClusterError, match="has no spine"):
        contention_free(lost, "ring")


def test_physical_numbers_modulo_spines_would_make_three_of_seven_pairs_of_servers_collide():
    # A leaf of eight servers with four GPUs, a job on two of them with eight spines.
    servers = [(first, second) for first in range(8) for second in range(first + 1, 8)]
    taken = [{(4 * server + place) % 8 for server in pair for place in range(4)} for pair in servers]
    assert sum(len(spines) < 8 for spines in taken) == 12
    assert len(servers) == 28


def test_what_brings_its_own_paths_or_does_not_apply_is_refused_with_what_does():
    with pytest.raises(ClusterError, match=r"forest has its own paths.*: use one of ring"):
        contention_free(RankSwitches.of_split(4, 4), "forest")
    with pytest.raises(ClusterError, match=r"xor needs a power of two.*there are 6: use .*shift"):
        contention_free(RankSwitches.of_split(3, 3), "xor")


def test_an_act_may_name_what_it_runs():
    assert contention_free(RankSwitches.of_split(4, 4), "all-gather:mesh").rounds == 1
