"""What a stack does with gradients unless told."""

from __future__ import annotations

import pytest

from ropewalk.strategy import Order, Strategy
from ropewalk.strategy.by_stack import as_run_by, gradients_in_words
from ropewalk.workload.zoo.stacks import STACKS

MEGATRON, EAGER = (STACKS[name].make for name in ("megatron", "eager"))


@pytest.mark.parametrize(("ranks", "gradients"), [(8, 40e6), (40, 40e6), (64, 64e6), (512, 512e6)])
def test_megatron_fills_buckets_of_40_million_gradients_or_a_million_for_each_rank(ranks, gradients):
    assert as_run_by(MEGATRON, Strategy(data=ranks)).order.bucket_bytes == 4 * gradients


def test_what_is_asked_for_stays():
    asked = Strategy(data=8, gradient_bytes=2.0, order=Order(fusion=0.0))
    assert as_run_by(MEGATRON, asked) == asked
    assert as_run_by(MEGATRON, Strategy(data=8), order_given=True).order == Order()


def test_stacks_of_pytorch_keep_its_buckets_and_the_width_of_weights():
    assert as_run_by(EAGER, Strategy(data=8)) == Strategy(data=8)


def test_gradients_that_nobody_shares_are_not_spoken_of():
    assert gradients_in_words(Strategy(gradient_bytes=4.0)) == ""
    assert gradients_in_words(Strategy(data=8, zero=3, gradient_bytes=4.0)) == "4 bytes each, layer by layer"
