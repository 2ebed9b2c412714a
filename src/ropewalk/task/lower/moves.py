"""What a rank does in the two passes of a layer: it computes until it must meet others, meets them, computes on.

All meetings inside a layer block: the layer cannot go on without them. Which collective a meeting is depends on the
split (Shoeybi et al., Megatron-LM, 2019; Korthikanti et al., 2022, for sequence parallelism):

| meeting | forward | backward | with sequence parallelism |
|---|---|---|---|
| enter a split region | nothing | all-reduce | all-gather, reduce-scatter |
| leave a split region | all-reduce | nothing | reduce-scatter, all-gather |
| to experts, from experts, from tables | all-to-all | all-to-all | the same |
| keys and values of the whole sequence | all-gather | reduce-scatter | the same |
| heads of the whole sequence, and back | all-to-all | all-to-all | the same |

Keys and values that circulate in a ring (Liu et al., Ring Attention, 2023) are an all-gather beside attention, whose
last part waits for it; going back they come round again, and their gradients with them. With causal halves that are
balanced, all ranks have as much to do in every round.

Shared experts that are computed meanwhile (`strategy.meanwhile`) stand behind the exchange that they hide.

Under sequence parallelism the inputs of split products are gathered once more in the backward pass; that is hidden
behind computation (Korthikanti et al., section 4.2.2) and not charged. Where Transformer Engine runs these products,
what it gathers is as narrow as what it multiplies, and collectives hide behind products (`overlapped`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from ropewalk.strategy.memory import gradient_bytes
from ropewalk.strategy.prices import Pace
from ropewalk.strategy.shares import Share, met_again
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.overlapped import Overlap, beside
from ropewalk.task.lower.taken import with_taken
from ropewalk.task.step import Act
from ropewalk.workload.dense import Linear
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.flat import FlatCopies
from ropewalk.workload.operator import RING, Operator


class Scope(IntEnum):
    """Whose one operation it is: one rank's, or that of ranks that differ only in some coordinate."""

    RANK = 0
    TENSOR = 1
    CONTEXT = 2
    EXPERT = 3
    DATA = 4
    EXPERT_DATA = 5
    TIED = 6
    """Of two stages that hold the same embedding: one for every rank of a stage."""
    BACK = 7
    """One rank's: gradients on their way back from one seat to another, where they need not go as the tensor came."""


SUMMED = (Scope.RANK, Scope.TENSOR)
"""Scopes of moves that only tensor ranks wait for: in a row they may be summed up."""

STREAMS = ("compute", "tensor", "context", "expert", "tables", "data", "zero", "pipeline")
"""Streams of a rank by number. Those of communication are named after what they are for; a collective on `tensor`,
`context`, `expert` or `tables` stops the computation, one on `data`, `zero` or `pipeline` runs beside it."""
STREAM = {name: number for number, name in enumerate(STREAMS)}
BLOCKING = tuple(STREAM[name] for name in ("tensor", "context", "expert", "tables"))
"""Streams of collectives that stop the computation."""


@dataclass(frozen=True, slots=True)
class Move:
    """A computation or a collective of one rank and those it meets."""

    act: Act
    scope: Scope
    amount: float
    """Seconds or bytes, as in a `Step`."""
    stream: int
    label: str
    repeats: int = 1
    layer: int = -1
    """The layer whose forward pass it belongs to, or whose gradients it reduces, as `Pieces.of` counts them."""
    priority: int = 0
    goes_on: bool = False
    """As in a `Step`."""
    beside: bool = False
    """It runs beside the computation behind it; what comes behind that waits for both."""


def forward_moves(share: Share, strategy: Strategy, prices: Pace) -> list[Move]:
    """The forward pass of a layer."""
    walk = _walk(share, strategy, prices, prices.forward, "forward")
    return with_taken(list(walk), share, prices, back=False)


def backward_moves(share: Share, strategy: Strategy, prices: Pace) -> list[Move]:
    """The backward pass of a layer, with what is computed again before it.

    Full recomputation repeats the forward pass of the layer, collectives included, that of parts of a block their
    own; the core of attention needs no collective unless the sequence is cut. GPUs of a server sum their gradients
    behind it: that is paid once a step, an equal part in every micro-batch.
    """
    walk = _walk(share, strategy, prices, prices.backward, "backward")
    moves = [*again_moves(share, strategy, prices), *with_taken(list(walk), share, prices, back=True)]
    inside = share.server.all_reduce_s(share.copied_parameters * gradient_bytes(strategy, prices.element_bytes))
    if inside:
        seconds, label = inside / strategy.micro_batches, f"{share.layer.name} backward"
        if moves and moves[-1].act is Act.COMPUTE:
            seconds += moves.pop().amount
        moves.append(_compute(seconds, label))
    return moves


def input_moves(share: Share, strategy: Strategy, prices: Pace) -> list[Move]:
    """What the layer before waits for: the backward pass without gradients of weights, with all its meetings."""
    walk = _walk(share, strategy, prices, prices.backward_input, "backward", " inputs")
    return [*again_moves(share, strategy, prices), *with_taken(list(walk), share, prices, back=True)]


def weight_moves(share: Share, strategy: Strategy, prices: Pace) -> list[Move]:
    """What is left of the backward pass: gradients of weights, for which ranks do not meet."""
    apart = replace(strategy, tensor_overlap=False)
    walk = _walk(share, apart, prices, prices.backward_weight, "backward", " weights")
    seconds = sum(move.amount for move in walk if move.act is Act.COMPUTE)
    return [_compute(seconds, f"{share.layer.name} backward weights")] if seconds else []


def recompute_moves(share: Share, strategy: Strategy, prices: Pace) -> list[Move]:
    """The forward pass of a layer once more; what was gathered for the backward pass is there already."""
    kept = tuple(op for op in share.layer.operators if not isinstance(op, FlatCopies))
    share = replace(share, layer=replace(share.layer, operators=kept))
    return list(_walk(share, strategy, prices, prices.forward, "recompute"))


def again_moves(share: Share, strategy: Strategy, prices: Pace) -> list[Move]:
    """What is computed once more before the gradients of this layer, with the meetings of ranks in it."""
    again = met_again(share) if share.recompute != "stage" else ()
    return recompute_moves(replace(share, layer=replace(share.layer, operators=again)), strategy, prices)


def condensed(moves: list[Move], label: str) -> list[Move]:
    """The same moves with all that only tensor ranks wait for in one piece: a computation, then its collectives.

    Tensor ranks do the same at the same time, so what lies between two moments at which others wait can be summed. How
    many moves a sum stands for is kept in `repeats`. Other meetings stay where they are.
    """
    found: list[Move] = []
    run: list[Move] = []
    for move in moves:
        # A computation that something runs beside ends when it ends.
        if move.scope in SUMMED and (run or not found or not found[-1].beside):
            run.append(move)
        else:
            found += [*_summed(run, label), move]
            run = []
    return found + _summed(run, label)


def _summed(run: list[Move], label: str) -> list[Move]:
    alike: dict[tuple[Act, Scope, int], list[Move]] = {}
    for move in run:
        alike.setdefault((move.act, move.scope, move.stream), []).append(move)
    return [
        Move(
            act, scope, sum(move.amount for move in group), stream, label, sum(move.repeats for move in group),
            group[0].layer,
        )
        for (act, scope, stream), group in sorted(alike.items())
    ]  # fmt: skip


def _walk(
    share: Share,
    strategy: Strategy,
    prices: Pace,
    price: Callable[[tuple[Operator, ...]], float],
    name: str,
    part: str = "",
) -> Iterator[Move]:
    """Computations and meetings of one pass in the order in which it goes through the layer.

    `part` says in labels which part of a backward pass it is.
    """
    label = f"{share.layer.name} {name}"
    back, operators = name == "backward", share.layer.operators
    segment: list[Operator] = []
    done = 0.0  # of the seconds of the segment, those that were computed beside a ring
    overlap = Overlap(share, strategy, prices, back=back, weights_apart=bool(part))

    def worked() -> list[Move]:
        run = tuple(segment[::-1] if back else segment)
        return [_compute(price(run) - done, label + part)] if run else []

    for at, op in list(enumerate(operators))[:: -1 if back else 1]:
        if not isinstance(op, Exchange):
            segment.append(op)
            continue
        if op.meeting is Meeting.ARRIVED:
            yield from worked()
            segment, done = [], 0.0
            continue
        product = beside(operators, at)
        met = _meet(op, share, _bytes_of(product, prices), back, label)
        if met is None:
            continue
        left = overlap.left(met.amount, op, product)
        if left is None:
            continue
        rings = op.meeting is Meeting.CONTEXT and share.split.exchange == RING
        meanwhile = met.scope is Scope.EXPERT and share.split.meanwhile
        core = [segment.pop()] if rings and back else []
        if meanwhile and back:
            yield replace(met, beside=True)
        yield from worked()
        segment, done = core, 0.0
        if rings:
            rounds = share.split.context
            yield from (replace(one, beside=True) for one in _round_the_ring(met, back))
            done = price(tuple(core or operators[at + 1 : at + 2])) * (rounds - 1) / rounds
            yield _compute(done, label + part)
        elif not (meanwhile and back):
            yield replace(met, amount=left, beside=meanwhile)
    yield from worked()


def _round_the_ring(met: Move, back: bool) -> tuple[Move, ...]:
    """Keys and values circulate; in the backward pass so do their gradients."""
    return (replace(met, act=Act.ALL_GATHER), met) if back else (met,)


def _compute(seconds: float, label: str) -> Move:
    return Move(Act.COMPUTE, Scope.RANK, seconds, STREAM["compute"], label)


def _bytes_of(product: Linear | None, prices: Pace) -> tuple[float, float]:
    """Bytes of an element that ranks sum up, and of one that they gather for this product."""
    numbers = prices.listed.numbers
    narrow = numbers.narrow_bytes if product is not None else None
    return numbers.element_bytes, numbers.element_bytes if narrow is None else narrow


def _meet(exchange: Exchange, share: Share, sizes: tuple[float, float], back: bool, label: str) -> Move | None:
    """The collective of a meeting; None where the split makes it none. A server brings what its GPUs have together.

    `sizes` are bytes of an element that is summed up and of one that tensor ranks gather.
    """
    split = share.split
    if not exchange.meets(split):
        return None
    size = exchange.elements * share.server.gpus * sizes[0]
    match exchange.meeting:
        case Meeting.ENTER | Meeting.LEAVE:
            # Leaving is entering the other way round.
            gathers = (exchange.meeting is Meeting.ENTER) is not back
            ways, scope, stream = split.tensor, Scope.TENSOR, STREAM["tensor"]
            if split.sequence:
                act = Act.ALL_GATHER if gathers else Act.REDUCE_SCATTER
                size *= sizes[1] / sizes[0] if gathers else 1
            elif gathers:
                return None
            else:
                act = Act.ALL_REDUCE
        case Meeting.DISPATCH | Meeting.COMBINE:
            ways, scope, stream, act = split.expert, Scope.EXPERT, STREAM["expert"], Act.ALL_TO_ALL
            size *= exchange.travelling(split)
        case Meeting.TABLES:
            ways, scope, stream, act = share.tables_over, Scope.DATA, STREAM["tables"], Act.ALL_TO_ALL
        case Meeting.HEADS:
            ways, scope, stream, act = split.context, Scope.CONTEXT, STREAM["context"], Act.ALL_TO_ALL
        case Meeting.CONTEXT:
            # The exchange counts a rank's part of the keys and values of all heads; tensor ranks share out the heads.
            ways, scope, stream = split.context, Scope.CONTEXT, STREAM["context"]
            act = Act.REDUCE_SCATTER if back else Act.ALL_GATHER
            size = size * split.context / split.tensor
    return Move(act, scope, size, stream, f"{label} {exchange.meeting.value}") if ways > 1 else None
