"""Chains of the search against every seating of small spaces, and the same chains however they are run."""

import sys
from functools import partial
from random import Random

import pytest
from tiny_seats import circle, priced, recommender, recommender_on_four, stacked, switch, tiny_space

from ropewalk.codesign.chains import Chain, run_chain, search_chains
from ropewalk.codesign.estimate import SeatingEstimate
from ropewalk.codesign.exhaustive import every_seating
from ropewalk.codesign.link_loads import LinkLoads
from ropewalk.codesign.metropolis import Anew, SearchPatience, search, wandered
from ropewalk.codesign.seats import Ledger, space_of
from ropewalk.errors import InputError, StrategyError

WORLDS = {
    "table, three layers on four servers": (lambda: recommender(tables=1), 4, {}),
    "three layers on six servers": (lambda: stacked(widths=(64, 8, 64, 8)), 6, {}),
    "cut by outputs": (lambda: stacked(widths=(64, 8, 64)), 4, {"tensor": True}),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("network", [switch, circle])
@pytest.mark.parametrize("bandwidth", [1e5, 1e6, 1e8])
def test_the_search_finds_the_best_of_all_seatings(world, network, bandwidth):
    make, servers, allowed = WORLDS[world]
    pricer, space = tiny_space(make(), servers, **allowed)
    costs = SeatingEstimate(pricer, LinkLoads(network(servers, bandwidth), servers), space.seats, servers)
    optimum = min(map(costs.place, every_seating(space)))
    found = search_chains(lambda: (space, costs), chains=4, seed=7, patience=SearchPatience(1500), workers=1)
    assert found.best.seconds == optimum
    assert costs.place(found.best.places) == optimum


def test_memory_binds_the_search_and_the_judge_alike():
    pricer = priced(stacked(widths=(64,) * 4), memory=1e9 + 9e4)
    space = space_of(pricer, 4)
    costs = SeatingEstimate(pricer, LinkLoads(switch(4, 1e9), 4), space.seats, 4)
    optimum, places = min((costs.place(places), places) for places in every_seating(space))
    found = search_chains(lambda: (space, costs), chains=4, seed=1, patience=SearchPatience(1500), workers=1)
    assert found.best.seconds == optimum
    assert sum(chain.did_not_fit for chain in found.chains) > 0
    assert all(Ledger(space, chain.places).held.max() <= space.room_bytes for chain in found.chains)
    assert len(list(every_seating(space))) < space.size
    assert Ledger(space, places).held.max() <= space.room_bytes


def test_a_cost_of_whole_seatings_makes_the_same_chain_as_an_evaluator():
    space, costs = recommender_on_four()
    _, other = recommender_on_four()
    whole = search(space, lambda seating: other.place(space.places_of(seating)), seed=3, patience=SearchPatience(300))
    assert whole == search(space, costs, seed=3, patience=SearchPatience(300))


def test_the_same_seed_gives_the_same_chain_and_another_seed_another():
    space, costs = recommender_on_four()
    first, again, other = (search(space, costs, seed=seed, patience=SearchPatience(200)) for seed in (1, 1, 2))
    assert first == again
    assert (first.accepted, first.history) != (other.accepted, other.history)


def test_history_goes_down_from_the_start_to_the_best():
    space, costs = recommender_on_four()
    found = search(space, costs, seed=1, patience=SearchPatience(500))
    proposals, seconds = zip(*found.history, strict=True)
    assert (proposals[0], seconds[0]) == (0, costs.place(space.start))
    assert list(seconds) == sorted(seconds, reverse=True)
    assert seconds[-1] == found.seconds == costs.place(found.places)


def test_chains_besides_the_others_go_on_from_where_the_search_is_and_change_nothing_of_them():
    space, costs = recommender_on_four()
    there = search(space, costs, seed=1, patience=SearchPatience(200)).places
    begin = partial(search_chains, lambda: (space, costs), seed=5, patience=SearchPatience(0), start=there, workers=1)
    alone, more = begin(chains=3).chains, begin(chains=3, besides=2).chains
    assert more[:3] == alone
    assert [chain.places == there for chain in more] == [True, False, False, True, True]
    assert len({chain.seed for chain in more}) == 5


def test_acceptance_does_not_depend_on_the_unit_of_time():
    """Steps a thousand times as long make the same chain."""
    space, costs = recommender_on_four()

    def slow(seating):
        return 1024.0 * costs.place(space.places_of(seating))

    quick = search(space, costs, seed=5, patience=SearchPatience(300))
    assert search(space, slow, seed=5, patience=SearchPatience(300)).places == quick.places
    assert search(space, slow, seed=5, patience=SearchPatience(300)).accepted == quick.accepted


def test_greed_decides_how_much_worse_is_accepted():
    space, costs = recommender_on_four()
    accepted = [search(space, costs, seed=5, patience=SearchPatience(400, greed)).accepted for greed in (0, 2, 1e9)]
    assert accepted[0] > accepted[1] > accepted[2]


def test_a_chain_begins_where_it_is_told_and_goes_back_to_the_best():
    space, costs = recommender_on_four()
    start = tuple(options[-1] for options in space.options)
    found = search(space, costs, seed=0, start=start, patience=SearchPatience(1))
    assert found.history[0] == (0, costs.place(start))
    heard = []
    search(space, costs, seed=0, patience=SearchPatience(10, back_every=5), tell=lambda *news: heard.append(news))
    assert [number for number, _ in heard] == [5, 10]


def test_evaluators_undo_what_is_not_kept():
    space, costs = recommender_on_four()
    anew = Anew(space, lambda seating: costs.place(space.places_of(seating)))
    start = anew.place(space.start)
    moved = {2: space.options[2][-1]}
    assert anew.tried(moved) != start
    assert anew.tried({}) == start
    anew.tried(moved)
    anew.keep()
    assert anew.tried({}) != start


@pytest.mark.parametrize("workers", [2])
def test_chains_do_not_depend_on_the_number_of_processes(workers):
    found = search_chains(
        partial(recommender_on_four, 1e5), chains=3, seed=11, patience=SearchPatience(100), workers=workers
    )  # fmt: skip
    alone = search_chains(partial(recommender_on_four, 1e5), chains=3, seed=11, patience=SearchPatience(100), workers=1)
    assert found == alone


def test_chains_begin_in_different_places():
    space, costs = recommender_on_four()
    chains = [Chain(number, number, SearchPatience(0), None) for number in range(6)]
    begun = [run_chain(lambda: (space, costs), chain).places for chain in chains]
    assert begun[:3] == list(space.starts[:3])
    assert len(set(begun)) >= 4
    assert run_chain(lambda: (space, costs), Chain(0, 0, SearchPatience(0), space.starts[1])).places == space.starts[1]


def test_wandering_stays_in_memory():
    space = space_of(priced(stacked(widths=(64,) * 4), memory=1e9 + 9e4), 4)
    for seed in range(5):
        assert Ledger(space, wandered(space, seed)).held.max() <= space.room_bytes


def test_spaces_too_large_for_the_judge_are_refused():
    _, space = tiny_space(recommender(tables=6), 6)
    with pytest.raises(StrategyError, match="more than the 1000 of an exhaustive search"):
        next(every_seating(space, most=1000))


def test_bad_settings_are_refused_with_a_remedy():
    with pytest.raises(StrategyError, match="3 findings"):
        SearchPatience(-1, -1.0, 0)
    with pytest.raises(StrategyError, match="0 chains cannot search: give 1 or more"):
        search_chains(recommender_on_four, chains=0, seed=0)
    with pytest.raises(StrategyError, match="no engine 'slurm': use processes or ray"):
        search_chains(recommender_on_four, chains=1, seed=0, engine="slurm")


def test_random_seatings_are_never_better_than_the_judge():
    space, costs = recommender_on_four(1e5)
    optimum = min(map(costs.place, every_seating(space)))
    draw = Random(2)
    assert all(costs.place([draw.choice(options) for options in space.options]) >= optimum for _ in range(200))


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"needs Ray: install it with .* -m pip install"):
        search_chains(recommender_on_four, chains=1, seed=0, engine="ray")
