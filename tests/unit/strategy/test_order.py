"""Orders of gradients: what they say, what they refuse, and that they survive a file."""

import json

import pytest

from ropewalk.errors import StrategyError
from ropewalk.records import plain, record
from ropewalk.strategy import ORDERS, Order
from ropewalk.strategy.order import launches_of


def test_the_usual_order_is_what_ddp_does():
    assert Order() == ORDERS["buckets"].make
    assert Order().is_plain
    assert Order(fusion=0.0, overlap=False).is_plain
    assert not any(Order(**{name: value}).is_plain for name, value in {
        "partition_bytes": 4e6, "priority": "forward", "credit_bytes": 1.0, "arrival": "streamed", "across_steps": True,
        "fusion": launches_of([["a"]]),
    }.items())  # fmt: skip


@pytest.mark.parametrize(
    "order",
    [
        *(choice.make for choice in ORDERS.values()),
        Order(fusion=((("b", 0.25),), (("a", 1.0), ("b", 0.75))), partition_bytes=4e6, arrival="streamed"),
        Order(fusion=launches_of([["b"], ["a"]]), priority="queued", credit_bytes=8e6, overlap=False),
    ],
)
def test_an_order_survives_a_file(order):
    assert record(Order, json.loads(json.dumps(plain(order))), "order", StrategyError) == order


def test_everything_that_is_wrong_is_said_at_once():
    with pytest.raises(StrategyError) as refused:
        Order(fusion=-1.0, partition_bytes=0.0, credit_bytes=float("nan"), priority="last", arrival="late")
    for fact in ("bucket of -1", "pieces of 0 bytes", "credit of nan", "no priority 'last'", "no arrival 'late'"):
        assert fact in str(refused.value)


def test_every_byte_is_launched_once():
    with pytest.raises(StrategyError, match=r"a is launched 1.5 times: launch all of its gradients exactly once"):
        Order(fusion=((("a", 1.0),), (("a", 0.5),)))
