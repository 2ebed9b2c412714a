"""Laws of breadth-first broadcasts on any small fabric, and of the division of parcels among doors behind them."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from optimum_worlds import fabric_of, small_fabrics

from ropewalk.collectives.breadth_first import bfb_schedule, neighbours_of
from ropewalk.collectives.breadth_first.split import Parcels, divide, least_time
from ropewalk.collectives.optimum import all_gather, all_reduce, network_of, reduce_scatter


@settings(max_examples=60, deadline=None)
@given(small_fabrics(most_hosts=6), st.integers(1, 3))
def test_schedules_are_proved_take_the_fewest_rounds_and_never_beat_the_optimum(world, segments):
    network = network_of(fabric_of(*world))
    optima = {"allgather": all_gather, "reducescatter": reduce_scatter, "allreduce": all_reduce}
    for collective, optimum in optima.items():
        schedule = bfb_schedule(network, collective, segments)
        schedule.program.check()
        schedule.routes.check()
        halves = 2 if collective == "allreduce" else 1
        assert len(schedule.program.rounds) == halves * neighbours_of(network).diameter + segments - 1
        assert float(schedule.promise) <= float(optimum(network).algbw) * (1 + 1e-9)


@st.composite
def _parcels(draw: st.DrawFn) -> Parcels:
    doors = draw(st.integers(1, 4))
    sets = st.sets(st.integers(0, doors - 1), min_size=1).map(lambda chosen: tuple(sorted(chosen)))
    fits = draw(st.lists(sets, min_size=1, max_size=5))
    size = draw(st.lists(st.integers(1, 9), min_size=len(fits), max_size=len(fits)))
    width = draw(st.lists(st.integers(1, 7), min_size=doors, max_size=doors))
    return Parcels(tuple(fits), tuple(size), tuple(Fraction(value, 3) for value in width))


@settings(max_examples=200, deadline=None)
@given(_parcels())
def test_the_least_time_is_the_largest_ratio_of_parcels_to_their_doors(parcels):
    numbers = range(len(parcels.fits))
    subsets = chain.from_iterable(combinations(numbers, count) for count in range(1, len(numbers) + 1))
    ratios = []
    for subset in subsets:
        doors = {door for parcel in subset for door in parcels.fits[parcel]}
        ratios.append(Fraction(sum(parcels.size[p] for p in subset)) / sum(parcels.width[door] for door in doors))
    assert least_time(parcels) == max(ratios)


@settings(max_examples=200, deadline=None)
@given(_parcels(), st.integers(1, 5), st.lists(st.integers(0, 40), min_size=4, max_size=4))
def test_a_division_brings_everything_through_or_names_parcels_that_cannot(parcels, scale, room):
    division = divide(parcels, room[: len(parcels.width)], scale)
    if division.stuck:
        doors = {door for parcel in division.stuck for door in parcels.fits[parcel]}
        assert sum(parcels.size[parcel] for parcel in division.stuck) * scale > sum(room[door] for door in doors)
        return
    used = [0] * len(parcels.width)
    for parcel, amounts in enumerate(division.amount):
        assert sum(amounts.values()) == parcels.size[parcel] * scale
        assert set(amounts) <= set(parcels.fits[parcel])
        for door, amount in amounts.items():
            used[door] += amount
    assert all(taken <= there for taken, there in zip(used, room, strict=False))
