"""Orders of a queue and who may start before the head."""

from __future__ import annotations

import math

import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy.backfill import QueueMoment, Waiter, backfill_named, conservative, easy
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import allocator_named
from ropewalk.tenancy.queue import Line, order_named
from ropewalk.tenancy.work import Iteration

JOBS = [
    Job("big", 8, 0.0, 10, Iteration(1.0), deadline_s=90.0),
    Job("small", 1, 1.0, 50, Iteration(1.0)),
    Job("urgent", 4, 2.0, 20, Iteration(1.0), deadline_s=30.0),
    Job("small too", 1, 3.0, 5, Iteration(1.0), deadline_s=90.0),
]


def _line(order: str) -> list[str]:
    line = Line(order_named(order))
    for number in (2, 0, 3, 1):
        line.add(number, JOBS[number], lambda job: job.iterations)
    return [JOBS[number].name for number in line]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("fifo", ["big", "small", "urgent", "small too"]),
        ("smallest", ["small", "small too", "urgent", "big"]),
        ("edf", ["urgent", "big", "small too", "small"]),
        ("shortest", ["small too", "big", "urgent", "small"]),
    ],
)
def test_every_order_puts_its_own_first_and_breaks_ties_by_arrival(order: str, wanted: list[str]) -> None:
    assert _line(order) == wanted


def test_who_was_thrown_out_by_a_failure_comes_before_everybody() -> None:
    line = Line(order_named("smallest"))
    line.add(1, JOBS[1], lambda job: 1.0)
    line.add(0, JOBS[0], lambda job: 1.0, again=True)
    assert list(line) == [0, 1]
    line.remove(0)
    assert line.head == 1
    assert len(line) == 1


def test_unknown_orders_and_backfills_are_refused_with_what_there_is() -> None:
    with pytest.raises(ClusterError, match="choose one of fifo, smallest, edf, shortest"):
        order_named("lifo")
    with pytest.raises(ClusterError, match="choose one of none, easy, conservative"):
        backfill_named("always")


def _moment(waiting: list[tuple[int, float]], ends: tuple[float, float] = (10.0, 30.0)) -> QueueMoment:
    """8 GPUs; 4 are taken until the first end, 2 more until the second."""
    state = Occupancy(plant("leaf-spine:1x1x8", gpus_per_server=8))
    allocate = allocator_named("none")
    for name, gpus in (("early", 4), ("late", 2)):
        found = allocate(state, name, gpus)
        state.place(found)  # type: ignore[arg-type]
    waiters = [Waiter(number, f"w{number}", gpus, expected) for number, (gpus, expected) in enumerate(waiting)]
    return QueueMoment(0.0, state, allocate, waiters, [(ends[0], "early"), (ends[1], "late")])


def test_easy_lets_a_job_past_that_is_done_before_the_head_can_start() -> None:
    found = easy(_moment([(6, 5.0), (2, 10.0)]))
    assert found is not None
    assert found[0] == 1


def test_easy_keeps_a_job_back_that_would_delay_the_head() -> None:
    """At 10 s six GPUs are free and the head needs them all; two taken until 10.5 s would make it wait for them."""
    assert easy(_moment([(6, 5.0), (2, 10.5)])) is None


def test_easy_lets_a_long_job_past_where_the_head_fits_beside_it() -> None:
    found = easy(_moment([(4, 5.0), (2, 1000.0)]))
    assert found is not None
    assert found[0] == 1


def test_conservative_also_keeps_its_promise_to_the_second_in_line() -> None:
    """Head: 6 GPUs from 10 s to 15 s. Second: 8 GPUs, so from 30 s. Third: 1 GPU for 100 s would delay the second."""
    line = [(6, 5.0), (8, 5.0), (1, 100.0)]
    assert conservative(_moment(line)) is None
    found = conservative(_moment([*line[:2], (1, 10.0)]))
    assert found is not None
    assert found[0] == 2


def test_nothing_goes_past_when_nobody_fits_or_nobody_waits() -> None:
    assert easy(_moment([(6, 1.0), (3, 1.0)])) is None
    assert easy(_moment([(6, 1.0)])) is None
    assert conservative(_moment([(9, math.inf)])) is None
