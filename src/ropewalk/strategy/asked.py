"""What a strategy asks of a training framework: the few facts that decide whether one can run it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from ropewalk.collectives.choice import collective_choice
from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.timetable.named import TIMETABLES
from ropewalk.workload.workload import Workload


@dataclass(frozen=True)
class StrategyFacts:
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
    context: str = ""
    """How context ranks meet, where there are several."""
    halves: bool = True
    """The sequence can be cut into two pieces for each context rank, as causal attention is balanced."""
    expert: bool = False
    folded: bool = False
    """Experts are spread over tensor or context ranks too."""
    meanwhile: bool = False
    """Shared experts are computed while tokens travel."""
    ahead: bool = False
    """Updated weights are gathered while the next forward pass runs."""
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
    """What single layers do differently: `tensor`, `recompute`, or `heads`, where as many blocks at the head of every
    piece are recomputed and no others."""
    order: str = "buckets"
    """`buckets`, `launches` (groups of layers by name, in order), or `other`, with what was asked for."""
    overlap: bool = True
    optimiser: str = "adamw"
    precision: str = "bf16"
    serving: str = ""
    """A collective in which some ranks serve others."""


def asked_of(
    strategy: Strategy, workload: Workload | None = None, *, algorithm: str = "ring", precision: str = "bf16"
) -> StrategyFacts:
    """What a strategy asks; `workload` and `algorithm`, where known, say which model and which collectives."""
    piped = strategy.pipeline > 1
    return StrategyFacts(
        model="any" if workload is None else "transformer" if is_transformer(workload) else "other",
        unequal="seats" if strategy.grain == SERVER else "parts" if strategy.parts else "",
        replicas=strategy.data * strategy.context > 1,
        tensor=strategy.tensor > 1,
        sequence_parallel=strategy.sequence_parallel,
        context=strategy.context_exchange if strategy.context > 1 else "",
        halves=workload is None or workload.sequence % (2 * strategy.context) == 0,
        expert=strategy.expert > 1,
        meanwhile=strategy.shared_overlap,
        ahead=strategy.gather_ahead,
        folded=strategy.fold_experts and strategy.tensor * strategy.context > 1,
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
        layers=_layers(strategy, workload),
        order=_order(strategy),
        overlap=strategy.order.overlap,
        optimiser=strategy.optimiser,
        precision=precision,
        serving=_serving(algorithm),
    )


def is_transformer(workload: Workload) -> bool:
    """Is it an embedding, blocks and a head in a row, as language models of the zoo are?"""
    layers = workload.layers
    return len(layers) > 2 and layers[0].name == "embedding" and layers[1].name[:6] == "block "


def _pieces_each(strategy: Strategy) -> int:
    known = strategy.rows or strategy.schedule in TIMETABLES
    return strategy.pieces_each if known else strategy.interleave


def _layers(strategy: Strategy, workload: Workload | None) -> str:
    if any(choice.tensor is not None for choice in strategy.choices):
        return "tensor"
    if not strategy.choices:
        return ""
    return "recompute" if workload is None or recomputed_heads(strategy, workload) is None else "heads"


def recomputed_heads(strategy: Strategy, workload: Workload) -> int | None:
    """How many blocks at the head of every piece are recomputed in full; None where that is not how it is done.

    Where the strategy leaves the cut to prices, every run of recomputed blocks is taken for the head of a piece.

    >>> from ropewalk.strategy.strategy import LayerChoice
    >>> from ropewalk.workload.zoo import build
    >>> heads = tuple(LayerChoice(f"block {number}", recompute="full") for number in (0, 1, 6, 7))
    >>> recomputed_heads(Strategy(pipeline=2, stages=(0, 7), choices=heads), build("gpt2", 1))
    2
    """
    if not is_transformer(workload):
        return None
    kinds = [strategy.recompute_of(layer) for layer in workload.layers[1:-1]]
    if not {*kinds} <= {"none", "full"}:
        return None
    again = [kind == "full" for kind in kinds]
    firsts = strategy.stages or ((0,) if strategy.pieces == 1 else None)
    if firsts is None:
        runs = [len(list(run)) for recomputed, run in groupby(again) if recomputed]
        return runs[0] if len(runs) == strategy.pieces and len({*runs}) == 1 else None
    ends = [*(first - 1 for first in firsts[1:]), len(again)]  # layer 0 is the embedding
    pieces = [again[max(0, first - 1) : end] for first, end in zip(firsts, ends, strict=True)]
    count = max(map(sum, pieces))
    heads = all(piece == [True] * min(count, len(piece)) + [False] * max(0, len(piece) - count) for piece in pieces)
    return count if heads else None


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
