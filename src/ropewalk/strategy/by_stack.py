"""What a stack does with gradients where nobody says otherwise."""

from __future__ import annotations

from dataclasses import replace

from ropewalk.strategy.order import Order
from ropewalk.strategy.strategy import Strategy
from ropewalk.workload.zoo.stacks import Stack

ZERO_3 = 3
"""ZeRO's stage in which every layer is reduced by itself."""


def gradients_in_words(strategy: Strategy) -> str:
    """How wide gradients are and what is reduced at once, where that is not as PyTorch does it; otherwise empty.

    >>> gradients_in_words(Strategy(data=8, gradient_bytes=4.0)), gradients_in_words(Strategy(data=8))
    ('4 bytes each, buckets of 26.21 MB', '')
    """
    usual = strategy.gradient_bytes is None and strategy.order == Order()
    if usual or strategy.replicas == 1:
        return ""
    width = "as wide as weights" if strategy.gradient_bytes is None else f"{strategy.gradient_bytes:g} bytes each"
    return f"{width}, {'layer by layer' if strategy.zero >= ZERO_3 else strategy.order.said()}"


def as_run_by(stack: Stack, strategy: Strategy, *, order_given: bool = False) -> Strategy:
    """The strategy with gradients as wide and in buckets as large as the stack has them, where neither is given.

    Megatron-LM adds up and sends gradients in float32, in buckets of 40 million of them, or of a million for each rank
    that they are reduced over where that is more.

    >>> from ropewalk.workload.zoo.stacks import STACKS
    >>> usual = as_run_by(STACKS["megatron"].make, Strategy(data=64))
    >>> usual.gradient_bytes, usual.order.said()
    (4.0, 'buckets of 256 MB')
    """
    width = strategy.gradient_bytes or stack.gradient_bytes
    made = replace(strategy, gradient_bytes=width)
    if not stack.bucket_gradients or not width or order_given or replace(strategy.order, overlap=True) != Order():
        return made
    gradients = max(stack.bucket_gradients, stack.bucket_per_rank * strategy.replicas)
    return replace(made, order=replace(strategy.order, fusion=width * gradients))
