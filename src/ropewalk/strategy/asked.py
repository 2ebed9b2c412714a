"""What a strategy asks of a training framework: the few facts that decide whether one can run it."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.collectives.choice import collective_choice
from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.timetable.named import TIMETABLES
from ropewalk.workload.workload import Workload


@dataclass(frozen=True)
class Asked:
    """Facts that many strategies have in common, so whatever is decided by them is decided once for all of them.

    >>> asked_of(Strategy(data=2, tensor=8)) == asked_of(Strategy(data=64, tensor=2))
    True
    """

    model: str = "any"
    """`transformer`: an embedding, blocks and a head in a row; `other`; `any` where nobody said."""
    unequal: str = ""
    """What keeps ranks from being uniform: `seats` of single layers, `parts` with replicas of their own."""
    replicas: bool = False
    """More than one rank holds the same weights (data or context parallelism)."""
    tensor: bool = False
    sequence_parallel: bool = False
    context: bool = False
    halves: bool = True
    """The sequence can be cut into two pieces for each context rank, as causal attention is balanced."""
    expert: bool = False
    pipeline: bool = False
    schedule: str = "1f1b"
    pieces_each: int = 1
    whole_groups: bool = True
    """As many micro-batches as stages, or a multiple."""
    own_rows: bool = False
    """The timetable was made for this very plan."""
    own_cut: bool = False
    """The strategy says where stages begin."""
    accumulates: bool = False
    """A rank runs more than one micro-batch in a step."""
    zero: int = 0
    regather: bool = True
    recompute: str = "none"
    layers: str = ""
    """What single layers do differently: `recompute` or `tensor`."""
    order: str = "buckets"
    """`buckets`, `launches` (groups of layers by name, in order), or `other`, with what was asked for."""
    overlap: bool = True
    optimiser: str = "adamw"
    serving: str = ""
    """A collective in which some ranks serve others."""


def asked_of(strategy: Strategy, workload: Workload | None = None, *, algorithm: str = "ring") -> Asked:
    """What a strategy asks; `workload` and `algorithm`, where known, say which model and which collectives."""
    piped = strategy.pipeline > 1
    return Asked(
        model="any" if workload is None else "transformer" if is_transformer(workload) else "other",
        unequal="seats" if strategy.grain == SERVER else "parts" if strategy.parts else "",
        replicas=strategy.data * strategy.context > 1,
        tensor=strategy.tensor > 1,
        sequence_parallel=strategy.sequence_parallel,
        context=strategy.context > 1,
        halves=workload is None or workload.sequence % (2 * strategy.context) == 0,
        expert=strategy.expert > 1,
        pipeline=piped,
        schedule=strategy.schedule if piped else "1f1b",
        pieces_each=_pieces_each(strategy) if piped else 1,
        whole_groups=strategy.micro_batches % strategy.pipeline == 0,
        own_rows=piped and bool(strategy.rows),
        own_cut=piped and strategy.stages is not None,
        accumulates=strategy.micro_batches > 1,
        zero=strategy.zero,
        regather=strategy.regather or strategy.zero < 3,
        recompute=strategy.recompute,
        layers=_layers(strategy),
        order=_order(strategy),
        overlap=strategy.order.overlap,
        optimiser=strategy.optimiser,
        serving=_serving(algorithm),
    )


def is_transformer(workload: Workload) -> bool:
    """Is it an embedding, blocks and a head in a row, as language models of the zoo are?"""
    layers = workload.layers
    return len(layers) > 2 and layers[0].name == "embedding" and layers[1].name[:6] == "block "


def _pieces_each(strategy: Strategy) -> int:
    known = strategy.rows or strategy.schedule in TIMETABLES
    return strategy.pieces_each if known else strategy.interleave


def _layers(strategy: Strategy) -> str:
    if any(choice.tensor is not None for choice in strategy.choices):
        return "tensor"
    return "recompute" if strategy.choices else ""


def _order(strategy: Strategy) -> str:
    order = strategy.order
    if order.is_plain:
        return "buckets"
    if isinstance(order.fusion, tuple) and not (order.across_steps or order.credit_bytes):
        plain = order.priority == "fifo" and order.arrival == "whole" and order.partition_bytes == float("inf")
        return "launches" if plain else f"other: {order.said()}"
    return f"other: {order.said()}"


def _serving(algorithm: str) -> str:
    if "ps" not in algorithm:  # the usual case, many thousand times
        return ""
    choice = collective_choice(algorithm)
    names = (choice.default, *(name for _, name in choice.by_purpose))
    return next((name for name in names if name.startswith("ps")), "")
