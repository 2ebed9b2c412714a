"""Matchings: exact, only where there is demand, with halved demand after every round."""

import numpy as np
import pytest

from ropewalk.codesign.blossom import heaviest_matching
from ropewalk.codesign.cable_draft import CableDraft
from ropewalk.codesign.matching import MOST_EXACT, heaviest_first, heaviest_round, lay_matchings
from ropewalk.errors import FabricError


def demand(servers: int, **bytes_of: float) -> np.ndarray:
    """demand(4, s01=5) : server 0 sends 5 to server 1."""
    matrix = np.zeros((servers, servers))
    for name, value in bytes_of.items():
        matrix[int(name[1]), int(name[2])] = value
    return matrix


def test_two_light_pairs_beat_one_heavy_pair_in_the_middle() -> None:
    weights = np.array([[0, 5, 0, 0], [5, 0, 7, 0], [0, 7, 0, 5], [0, 0, 5, 0]])
    assert heaviest_matching(weights).tolist() == [1, 0, 3, 2]


def test_a_heavy_middle_leaves_two_servers_unmatched() -> None:
    weights = np.array([[0, 5, 0, 0], [5, 0, 11, 0], [0, 11, 0, 5], [0, 0, 5, 0]])
    assert heaviest_matching(weights).tolist() == [-1, 2, 1, -1]


def test_a_way_through_a_blossom_is_found() -> None:
    """A triangle 1 2 3 with a server hanging on two of its corners: all but one of five can be matched."""
    weights = np.zeros((5, 5), np.int64)
    for a, b, weight in ((1, 2, 8), (2, 3, 8), (1, 3, 8), (0, 1, 5), (3, 4, 5)):
        weights[a, b] = weights[b, a] = weight
    mate = heaviest_matching(weights)
    assert sum(weights[v, mate[v]] for v in range(5) if mate[v] >= 0) == 2 * 13


def test_both_directions_of_a_pair_count_for_a_duplex_cable() -> None:
    draft = CableDraft(3, 1, duplex=True)
    sources, destinations = heaviest_round(draft, demand(3, s01=4, s12=3, s21=3))
    assert (sources.tolist(), destinations.tolist()) == ([1], [2])


def test_one_heavy_pair_does_not_eat_every_round() -> None:
    """10 halves to 5, below the 6 of its neighbour; then 5 comes before the 3 that is left there."""
    draft = CableDraft(3, 3, duplex=True)
    lay_matchings(draft, demand(3, s01=10, s12=6))
    assert draft.count[0, 1] == 2
    assert draft.count[1, 2] == 1
    assert draft.sending.tolist() == [1, 0, 2]


def test_servers_without_demand_are_not_joined() -> None:
    draft = CableDraft(4, 2, duplex=True)
    remaining = lay_matchings(draft, demand(4, s01=8, s10=4))
    assert draft.cables() == ((0, 1, 2),)
    assert (remaining[0, 1], remaining[1, 0]) == (2.0, 1.0)


def test_an_odd_number_of_servers_leaves_one_out_of_each_round_but_uses_its_ports_later() -> None:
    draft = CableDraft(3, 2, duplex=True)
    lay_matchings(draft, np.ones((3, 3)) - np.eye(3))
    assert draft.cables() == ((0, 1, 1), (0, 2, 1), (1, 2, 1))


def test_simplex_cables_serve_one_direction_each() -> None:
    """A cycle of three takes one sending and one receiving port of each; no matching of pairs could do that."""
    draft = CableDraft(3, 1, duplex=False)
    remaining = lay_matchings(draft, demand(3, s01=4, s12=4, s20=4, s10=1))
    assert draft.cables() == ((0, 1, 1), (1, 2, 1), (2, 0, 1))
    assert (remaining[0, 1], remaining[1, 0]) == (2.0, 1.0)


def test_a_pair_a_million_times_lighter_is_still_joined() -> None:
    draft = CableDraft(4, 1, duplex=True)
    lay_matchings(draft, demand(4, s01=1e12, s23=1e-6))
    assert draft.cables() == ((0, 1, 1), (2, 3, 1))


def test_more_cables_than_ports_are_refused() -> None:
    draft = CableDraft(3, 1, duplex=True)
    with pytest.raises(FabricError, match="server 0 has more cables than its 1 ports"):
        draft.add(np.array([0, 0]), np.array([1, 2]))


def test_heaviest_pairs_first_are_worth_half_of_the_heaviest_matching_and_nobody_is_left_who_could_be_joined() -> None:
    weights = np.random.default_rng(7).integers(0, 5, (40, 40))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    mate, best = heaviest_first(weights), heaviest_matching(weights)
    joined = np.flatnonzero(mate >= 0)
    assert (mate[mate[joined]] == joined).all()
    alone = np.flatnonzero(mate < 0)
    assert not weights[np.ix_(alone, alone)].any()
    worth = [int(weights[np.flatnonzero(one >= 0), one[one >= 0]].sum()) for one in (mate, best)]
    assert worth[1] / 2 <= worth[0] <= worth[1]


def test_very_many_servers_are_joined_heaviest_pairs_first() -> None:
    servers = MOST_EXACT + 2
    wanted = np.zeros((servers, servers))
    wanted[np.arange(0, servers, 2), np.arange(1, servers, 2)] = 1.0
    draft = CableDraft(servers, 1, duplex=True)
    lay_matchings(draft, wanted)
    assert draft.cables() == tuple((at, at + 1, 1) for at in range(0, servers, 2))
