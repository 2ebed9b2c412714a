"""Groups with few rings, bad input, and the tie rule: what a search for jumps must not stumble over."""

from __future__ import annotations

import numpy as np
import pytest
from circulant_hops import best_jumps, mean_hops

from ropewalk.codesign.permutations import paper_jumps, round_up_jumps, select_jumps
from ropewalk.codesign.totient import directed_jumps, totient_jumps
from ropewalk.errors import RouteError, StrategyError
from ropewalk.routing import coin_change

DUPLEX_RINGS = {2: (1,), 3: (1,), 4: (1,), 6: (1,), 8: (1, 3), 12: (1, 5)}


@pytest.mark.parametrize("size", DUPLEX_RINGS)
def test_more_rings_than_a_small_group_has_come_back_as_those_it_has(size):
    for choose in (best_jumps, paper_jumps):
        assert sorted(choose(size, 5, duplex=True)) == list(DUPLEX_RINGS[size])
        assert sorted(choose(size, 9, duplex=False)) == list(totient_jumps(size, duplex=False))


def test_a_group_of_one_has_no_ring_and_nobody_asks_for_fewer_than_none():
    assert totient_jumps(1, duplex=True) == ()
    assert best_jumps(1, 3, duplex=True) == ()
    assert best_jumps(16, 0, duplex=True) == paper_jumps(16, 0, duplex=True) == ()
    with pytest.raises(StrategyError, match="give at least one server"):
        totient_jumps(0, duplex=True)
    for choose in (best_jumps, paper_jumps):
        with pytest.raises(StrategyError, match="-1 rings for a group of 16: give 0 or more"):
            choose(16, -1, duplex=True)


def test_of_two_equally_near_candidates_the_smaller_is_taken():
    # 16 servers and two rings: both 3 and 5 are one away from 4.
    assert select_jumps(16, 2, (1, 3, 5, 7), duplex=True) == (1, 3)


def test_opposite_candidates_are_one_duplex_ring():
    assert select_jumps(12, 4, (1, 5, 7, 11), duplex=True) == (1, 5)
    assert round_up_jumps(12, 4, (1, 5, 7, 11), duplex=True) == (1, 5)


def test_a_jump_outside_the_group_is_refused():
    with pytest.raises(StrategyError, match="jump 12 leaves a group of 12: give jumps from 1 to 11"):
        select_jumps(12, 2, (1, 12), duplex=True)


def test_two_servers_have_one_directed_ring_each_way_being_the_other():
    assert directed_jumps(2, (1,), duplex=True) == (1,)


def test_demand_at_one_distance_is_given_a_jump_of_that_distance():
    weight = np.zeros(128)
    weight[37] = 1.0
    assert 37 in best_jumps(128, 2, duplex=True, weight=weight)
    assert 91 not in best_jumps(128, 1, duplex=False, weight=weight)
    assert best_jumps(128, 1, duplex=False, weight=weight) == (37,)


def test_no_demand_counts_as_equal_demand():
    assert best_jumps(128, 2, duplex=True, weight=np.zeros(128)) == (1, 15)
    assert mean_hops(128, (1, 15), True, np.zeros(128)) == 0.0


def test_prime_jumps_only_keep_to_primes_and_one():
    for jump in best_jumps(128, 4, duplex=False, prime_only=True):
        assert jump == 1 or all(jump % number for number in range(2, jump))


@pytest.mark.parametrize("weight", [np.ones(3), np.full(16, np.nan), -np.ones(16)], ids=["short", "nan", "negative"])
def test_demand_that_is_no_demand_is_refused(weight):
    with pytest.raises(StrategyError, match="give 16 numbers"):
        best_jumps(16, 2, duplex=True, weight=weight)


def test_coins_that_share_a_factor_with_the_servers_do_not_reach_all():
    with pytest.raises(RouteError, match=r"never sum to 1 modulo 12.*add a coin that does not, such as 1"):
        coin_change(12, (2, 4))
    for coins in ((), (12,)):
        with pytest.raises(RouteError, match="give at least one stride"):
            coin_change(12, coins)
    assert coin_change(1, ()).hops.tolist() == [0]
