"""What a step has beyond the usual parts of its sort: an interval says which of it was never checked.

Layers that few models have, exchanges, timetables, formats of numbers, and a host that is the limit. A prediction of
them may be as good as any other, but no run has shown it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ropewalk.device.pricer import Pricer
from ropewalk.device.work import Work
from ropewalk.strategy import Strategy
from ropewalk.workload.adapted import bare
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.image import Convolution
from ropewalk.workload.operator import Operator, Split
from ropewalk.workload.scan import Scan
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo import parallel

ZOO = "zoo"
IN_HOST_MEMORY = "adamw_cpu"
OF_THEIR_WIDTH = ("bf16", "fp16", "tf32")
"""Formats that nearly all runs of as many bits have."""


@dataclass(frozen=True)
class Traits:
    """What a step has."""

    sequence: int
    """Tokens of a sample; 0 where samples are no sequences."""
    parts: tuple[str, ...] = ()
    """In words, in the order of the alphabet."""


def traits_of(workload: Workload, prices: Pricer, strategy: Strategy) -> Traits:
    """The traits of a step.

    >>> from ropewalk.device.pricer import pricer
    >>> from ropewalk.workload.zoo import build
    >>> traits_of(build("llava-1.5-7b", 1, 4096), pricer("h100", "fp8-block"), Strategy())
    Traits(sequence=4096, parts=('fp8-block', 'frozen weights', 'image encoders'))
    """
    parts = {*_of_model(workload), *_of_strategy(strategy)}
    if prices.precision.name not in OF_THEIR_WIDTH:
        parts.add(prices.precision.name)
    if _waits_for_its_host(workload, prices, strategy):
        parts.add("steps limited by their host")
    return Traits(workload.sequence, tuple(sorted(parts)))


def _waits_for_its_host(workload: Workload, prices: Pricer, strategy: Strategy) -> bool:
    """Does the host of a rank need longer to launch a micro-batch than its GPU needs to run it?"""
    found: dict[tuple[int, Split], Work] = {}
    whole = Work()
    for layer in workload.layers:
        split = strategy.split_of(layer)
        known = id(layer.operators), split
        if known not in found:
            mine = layer.split(split).operators
            found[known] = prices.forward_work(mine) + prices.backward_work(mine)
        whole += found[known]
    return whole.host_s > whole.gpu_s


def _of_model(workload: Workload) -> Iterator[str]:
    if workload.source != ZOO:
        yield "models from outside of the zoo"
    if workload.name == "parallel" or workload.name in parallel.SHAPES:
        yield "parallel blocks"
    if workload.trained_parameters() < workload.parameters():
        yield "frozen weights"
    for operators in {layer.operators for layer in workload.layers}:
        for operator in operators:
            yield from _of_operator(bare(operator), workload.sequence)


def _of_operator(operator: Operator, sequence: int) -> Iterator[str]:
    if isinstance(operator, Scan):
        yield "Mamba-2 layers"
    elif isinstance(operator, Convolution) and sequence:
        yield "image encoders"
    elif isinstance(operator, FusedAttention):
        if operator.window:
            yield "sliding windows"
        if operator.uneven:
            yield "multi-head latent attention"


def _of_strategy(strategy: Strategy) -> Iterator[str]:
    if strategy.context > 1:
        yield f"context parallelism by {strategy.context_exchange}"
    if strategy.pipeline > 1:
        yield f"timetable {strategy.schedule}"
    if strategy.parts:
        yield "stages with their own replicas"
    if strategy.optimiser == IN_HOST_MEMORY:
        yield "optimiser state in host memory"
