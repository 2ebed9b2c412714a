"""Topology and strategy by turns, on worlds small enough to know the answer."""

import math
from itertools import product

import pytest

from ropewalk.codesign.alternate import alternate, exhaust
from ropewalk.fabric.wiring import Wiring
from ropewalk.strategy.seating import Seat, Seating


def seating(*servers: int) -> Seating:
    """One layer on each of these servers."""
    return Seating(4, tuple(Seat((server,)) for server in servers))


def wiring(name: int) -> Wiring:
    return Wiring(4, 1, True, float(name + 1), 0.0, (), ((0, 1, 1),), 1, 0)


def name_of(made: Wiring) -> int:
    return int(made.bandwidth) - 1


EVERY = [seating(*places) for places in product(range(4), repeat=2)]


def made_for(strategy: Seating) -> Wiring:
    return wiring(strategy.seats[0].servers[0])


def best_on(costs):
    """A search that knows everything: the optimum on a given wiring."""
    return lambda made, start, number: min(EVERY, key=lambda one: costs(one, made))


def test_every_turn_is_timed_on_the_wiring_of_that_turn():
    asked = []

    def costs(strategy, made):
        asked.append((strategy, name_of(made)))
        # Each wiring likes the strategy one further on, and all are a little faster the higher they are.
        return 10.0 - name_of(made) - 0.1 * (strategy.seats[0].servers[0] == (name_of(made) + 1) % 4)

    found = alternate([EVERY[0]], search=best_on(costs), rewire=made_for, time=costs, rounds=5)
    assert [turn.plane for turn in found.history][:5] == ["start", "strategy", "topology", "strategy", "topology"]
    # After a rebuild the strategy that was kept is timed on the new wiring before anything is compared.
    assert (seating(1, 0), 0) in asked
    assert (seating(1, 0), 1) in asked
    assert name_of(found.best.wiring) == 3


def test_the_best_is_kept_with_the_wiring_it_was_timed_on():
    """Rewiring for the best strategy makes it slower here: the old wiring has to come back with it."""
    times = {(1, 0): 5.0, (1, 1): 9.0, (0, 0): 7.0, (0, 1): 8.0}

    def costs(strategy, made):
        return times.get((strategy.seats[0].servers[0], name_of(made)), 20.0)

    found = alternate([seating(0, 0)], search=best_on(costs), rewire=made_for, time=costs, rounds=3)
    assert found.best.seconds == 5.0
    assert found.best.seating.seats[0].servers == (1,)
    assert name_of(found.best.wiring) == 0
    assert costs(found.best.seating, found.best.wiring) == found.best.seconds


def test_it_ends_when_plane_one_finds_nothing_better():
    found = alternate(
        [EVERY[0]], search=lambda made, start, number: start, rewire=made_for, time=lambda a, b: 1.0, rounds=9
    )
    assert found.ended == "converged"
    assert len(found.history) == 2


def test_a_wiring_that_cannot_be_built_is_neither_kept_nor_gone_on_from():
    def costs(strategy, made):
        return math.inf if name_of(made) == 1 else 4.0 - (strategy.seats[0].servers[0] == 1)

    found = alternate([seating(0, 0)], search=best_on(costs), rewire=made_for, time=costs, rounds=5)
    assert found.best.seconds == 3.0
    assert name_of(found.best.wiring) == 0
    assert all(math.isfinite(turn.seconds) for turn in found.history)


def test_the_first_start_and_the_best_other_are_gone_on_from():
    def costs(strategy, made):
        return 5.0 + strategy.seats[0].servers[0]

    begun = []

    def search(made, start, number):
        begun.append(start.seats[0].servers[0])
        return start

    alternate(
        [seating(place, 0) for place in (3, 1, 2, 0)],
        search=search,
        rewire=made_for,
        time=costs,
        rounds=1,
        begin_with=2,
    )
    assert begun == [3, 0]


@pytest.mark.parametrize("seed", range(5))
def test_trying_everything_finds_what_no_pair_of_strategy_and_wiring_beats(seed):
    def costs(strategy, made):
        return math.sin(seed + 7.3 * EVERY.index(strategy) + 3.1 * name_of(made)) + 2

    found = exhaust(EVERY, [made_for(one) for one in EVERY], time=costs)
    every = [costs(strategy, made_for(other)) for strategy in EVERY for other in EVERY]
    assert found.best.seconds == min(every)
    assert found.ended == "exhaustive"
