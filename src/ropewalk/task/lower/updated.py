"""Weights that ranks updated in parts, gathered again: behind the update, or ahead of the layers that need them.

Under ZeRO-1 every data rank updates its part of the weights. Unless told otherwise all of them are gathered at the end
of the step. Ahead (Megatron-Core's `--overlap-param-gather`) they are gathered at its beginning, in the buckets in
which gradients are reduced, one after the other in the order of the model; the first forward pass of a layer waits for
the bucket that it is in. A step begins where the one before ended, so what is left of the gathers of the step before
is what this one begins with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ropewalk.device.numbers import Numbers
from ropewalk.strategy.memory import tied_copy
from ropewalk.strategy.shares import Share
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.moves import STREAM, Move, Scope
from ropewalk.task.step import Act

LABEL = "updated weights"


def gathered_behind(strategy: Strategy, held: Sequence[Share], numbers: Numbers) -> Iterator[Move]:
    """The all-gathers at the end of a step: of all weights that a stage holds."""
    dense = sum(share.parameters for share in held) + tied_copy(list(held))
    for scope, ways, count in (
        (Scope.DATA, strategy.replicas, dense),
        (Scope.EXPERT_DATA, strategy.expert_replicas, sum(share.expert_parameters for share in held)),
    ):
        if ways > 1 and count:
            size = _bytes(strategy, held, scope, count, numbers)
            yield Move(Act.ALL_GATHER, scope, size, STREAM["zero"], LABEL)


def gathered_ahead(
    layers: range,
    shares: Sequence[Share],
    dense: Mapping[int, int],
    reduces: Mapping[int, tuple[Move, ...]],
    strategy: Strategy,
    numbers: Numbers,
) -> dict[int, tuple[Move, ...]]:
    """All-gathers by the first layer that needs them: those of the buckets `reduces`, which end with that layer.

    `dense` has the parameters of each layer that all data ranks train.
    """
    found: dict[int, list[Move]] = {}
    for scope in (Scope.DATA, Scope.EXPERT_DATA):
        starts = {at: move for at in sorted(reduces) for move in reduces[at] if move.scope is scope}
        ends = [*list(starts)[1:], layers.stop]
        for (first, reduced), end in zip(starts.items(), ends, strict=False):
            inside = range(first, end)
            counts = dense if scope is Scope.DATA else {at: shares[at].expert_parameters for at in inside}
            count = sum(counts[at] for at in inside)
            size = _bytes(strategy, [shares[at] for at in inside], scope, count, numbers)
            gather = Move(Act.ALL_GATHER, scope, size, STREAM["zero"], LABEL, reduced.repeats)
            found.setdefault(first, []).append(gather)
    return {at: tuple(moves) for at, moves in found.items()}


def _bytes(strategy: Strategy, held: Sequence[Share], scope: Scope, count: int, numbers: Numbers) -> float:
    """Bytes of so many weights of these layers, some of them sent narrow."""
    less = 0.0
    if strategy.narrow_weights and numbers.sent_bytes is not None:
        less = numbers.element_bytes - numbers.sent_bytes
    if scope is Scope.DATA:
        narrow = sum(share.narrow - share.narrow_experts for share in held)
        most = sum(share.parameters for share in held)
    else:
        narrow, most = sum(share.narrow_experts for share in held), count
    return count * numbers.element_bytes - min(most, narrow) * less
