"""Seats of single layers as a strategy: one value, there and back, checked like any other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.errors import StrategyError
from ropewalk.records import plain, record
from ropewalk.strategy import Strategy, check
from ropewalk.strategy.part import Part
from ropewalk.strategy.seating import Manner, Seat, Seating, seating_of, strategy_of
from ropewalk.workload.source import open_workload

SEATS = Seating(6, (Seat((0, 1, 2, 3)), Seat((2,), Manner.PINNED), Seat((0, 2), Manner.TENSOR), Seat((1, 3))))


def test_a_seating_is_the_strategy_that_it_became() -> None:
    found = strategy_of(SEATS, batch=64, micro_batches=4)
    assert seating_of(found) == SEATS
    assert (found.ranks, found.global_batch, found.micro_batch) == (6, 64, 16)


def test_it_survives_a_file() -> None:
    found = strategy_of(SEATS, 64)
    assert record(Strategy, plain(found), "strategy", StrategyError) == found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"zero": 1}, "zero is 1, but placements per server fix it layer by layer"),
        ({"parts": (Part(0, 0, (0,)),)}, "1 parts for"),
        ({"parts": (Part(0, 0, (0, 0)), *(Part(at, at, (0,)) for at in range(1, 4)))}, "twice on one"),
        (
            {"parts": (Part(0, 1, (0,)), *(Part(at, at, (0,)) for at in range(1, 4)))},
            "give every layer a part, in order",
        ),
    ],
)
def test_what_seats_cannot_say_is_refused(change: dict[str, object], said: str) -> None:
    workload = open_workload("gpt:layers=2,hidden=64,heads=4,vocabulary=256", sequence=32)
    seats = Seating(4, (Seat((0, 1, 2, 3)),) * len(workload.layers))
    check(strategy_of(seats, 8), workload, 4)
    with pytest.raises(StrategyError, match=said):
        check(replace(strategy_of(seats, 8), **change), workload, 4)
    with pytest.raises(StrategyError, match="on 4 servers, but there are 2"):
        check(strategy_of(seats, 8), workload, 2)


def test_parts_of_several_layers_are_no_seats() -> None:
    with pytest.raises(StrategyError, match="give every layer a part, in order"):
        seating_of(replace(strategy_of(SEATS, 64), parts=(Part(0, 3, (0,)),)))
