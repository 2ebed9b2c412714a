"""The passes of a piece of the model, cut into legs at the moments at which ranks outside the gang wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ropewalk.strategy.memory import gradient_bytes
from ropewalk.strategy.prices import Pace
from ropewalk.strategy.shares import Share
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.moves import (
    STREAM,
    SUMMED,
    Move,
    Scope,
    backward_moves,
    condensed,
    forward_moves,
    input_moves,
    recompute_moves,
    weight_moves,
)
from ropewalk.task.lower.taken import beside_exchanges, beside_gathers, beside_reduces
from ropewalk.task.lower.updated import gathered_ahead
from ropewalk.task.step import Act
from ropewalk.timetable.passes import Pass

Shares = Sequence[Share] | Mapping[int, Share]
"""Shares by the number of their layer."""


@dataclass(frozen=True)
class Leg:
    """Moves in a row; weights to gather before them and gradients to reduce after them."""

    moves: tuple[Move, ...]
    gathers: tuple[Move, ...] = ()
    reduces: tuple[Move, ...] = ()
    layer: int = -1
    """The layer whose weights are gathered."""


LegsOfPass = dict[Pass, tuple[Leg, ...]]


@dataclass(frozen=True)
class Passes:
    """What a stage does for one micro-batch of one piece, by kind of pass."""

    plain: LegsOfPass
    reducing: LegsOfPass = field(default_factory=dict)
    """Passes that also reduce gradients: those of the last micro-batch, or all where gradients are shared out (ZeRO-2
    and up); and the first forward pass, where it gathers weights that were updated."""

    def legs(self, kind: Pass, *, reduces: bool) -> tuple[Leg, ...]:
        return self.reducing[kind] if reduces and kind in self.reducing else self.plain[kind]

    def compute_s(self, kind: Pass) -> float:
        """Seconds of computing in a pass."""
        return sum(move.amount for leg in self.plain[kind] for move in leg.moves if move.act is Act.COMPUTE)

    @property
    def operations(self) -> int:
        """Operations of one micro-batch."""
        return sum(
            len(leg.moves) + len(leg.gathers) for kind in (Pass.FORWARD, Pass.BACKWARD) for leg in self.plain[kind]
        )


Walk = Callable[[Share, Strategy, Pace], list[Move]]
"""A pass through a layer."""
Join = Callable[[list[list[Move]], str], list[Move]]
"""The moves of several layers in one list, under a label where they are summed up."""


class Walks:
    """The moves of the passes of layers, found once for layers that are alike.

    Layers that are alike have the same tuple of operators: to compare all that is in it takes far longer.
    """

    def __init__(self, prices: Pace) -> None:
        self.prices = prices
        self._known: dict[tuple[object, ...], tuple[Share, list[Move], bool]] = {}
        self._named: dict[tuple[object, ...], list[Move]] = {}
        self._summed: dict[tuple[int, ...], list[Move]] = {}

    def moves(self, walk: Walk, share: Share, strategy: Strategy, *, summed: bool) -> list[Move]:
        """The moves of a layer; where all are to be summed up, perhaps under the name of one that is alike."""
        inside = (share.server, strategy.micro_batches, strategy.gradient_bytes) if share.server.gpus > 1 else ()
        how = share.recompute, share.split, share.tables_over, strategy.tensor_overlap
        key = walk, id(share.layer.operators), how, inside
        if key not in self._known:
            # The share is kept, so that nothing else gets the identity of its operators.
            found = walk(share, strategy, self.prices)
            self._known[key] = share, found, all(move.scope in SUMMED for move in found)
        first, moves, nameless = self._known[key]
        old, new = first.layer.name, share.layer.name
        if old == new or (summed and nameless):
            return moves
        if (*key, new) not in self._named:
            self._named[*key, new] = [replace(move, label=new + move.label[len(old) :]) for move in moves]
        return self._named[*key, new]

    def condensed(self, layers: list[list[Move]], label: str) -> list[Move]:
        """What `condensed` makes of several layers whose moves are known here."""
        alike = tuple(map(id, layers))
        if alike not in self._summed:
            self._summed[alike] = condensed([move for moves in layers for move in moves], label)
        return [
            Move(one.act, one.scope, one.amount, one.stream, label, one.repeats, one.layer)
            if one.scope in SUMMED and one.label != label
            else one
            for one in self._summed[alike]
        ]


def passes_of(
    layers: range,
    shares: tuple[Share, ...],
    strategy: Strategy,
    walks: Walks,
    name: str,
    *,
    condense: bool,
    beside: Iterable[int] = (),
    apart: bool = False,
) -> Passes:
    """The passes of a piece of the model; `condense` sums up what only tensor ranks wait for.

    `walks` knows the moves of its layers. `beside` are the layers of other pieces on the same stage. `apart` keeps the
    forward passes of layers that have gradients apart, so that each can wait for its own.
    """
    element_bytes = walks.prices.element_bytes
    dense = _dense_parameters(layers, shares, beside)
    shared_out = layers if strategy.zero >= 3 else ()
    still = _frozen_parameters(layers, shares, beside)
    gathers = {at: _gathers(shares[at], dense[at] + still[at], strategy, element_bytes) for at in shared_out}
    nothing: dict[int, tuple[Move, ...]] = {}
    reduces = buckets(layers, shares, strategy, element_bytes, beside)
    again = gathers if strategy.regather else nothing

    def walked(walk: Walk) -> list[tuple[int, list[Move]]]:
        return [(at, walks.moves(walk, shares[at], strategy, summed=condense)) for at in layers]

    def written(run: list[list[Move]], label: str) -> list[Move]:
        moves = [move for moves in run for move in moves]
        return condensed(moves, label) if condense else moves

    ahead, back = walked(forward_moves), walked(backward_moves)[::-1]
    join = walks.condensed if condense else written
    if apart:
        ahead = [(at, [replace(move, layer=at) for move in moves]) for at, moves in ahead]
    begins = [at for at in layers if dense[at] or shares[at].expert_parameters] if apart else []
    backward = f"{name} backward"
    rerun: tuple[Leg, ...] = ()
    if strategy.recompute == "stage":
        rerun = _legs(walked(recompute_moves), again, nothing, f"{name} recompute", join)
    plain = {
        Pass.FORWARD: _legs(ahead, gathers, nothing, f"{name} forward", written if apart else join, begins),
        Pass.BACKWARD: rerun + _legs(back, again, nothing, backward, join),
    }
    reducing = {Pass.BACKWARD: rerun + _legs(back, again, reduces, backward, join)}
    if strategy.gather_ahead:
        first = gathered_ahead(layers, shares, dense, reduces, strategy, walks.prices.listed.numbers)
        reducing[Pass.FORWARD] = _legs(ahead, first, nothing, f"{name} forward", written if apart else join, begins)
    if strategy.splits_backward:
        late = walked(weight_moves)[::-1]
        plain[Pass.INPUT] = rerun + _legs(walked(input_moves)[::-1], again, nothing, f"{backward} inputs", join)
        # Gradients of weights need no weights: nothing is gathered for them.
        plain[Pass.WEIGHT] = _legs(late, nothing, nothing, f"{backward} weights", join)
        reducing[Pass.WEIGHT] = _legs(late, nothing, reduces, f"{backward} weights", join)
    return _slowed(plain, reducing, strategy, walks)


def _slowed(plain: LegsOfPass, reducing: LegsOfPass, strategy: Strategy, walks: Walks) -> Passes:
    """The passes with what computations lose to the exchanges that run beside them."""
    plain, reducing = (
        {kind: beside_exchanges(legs, strategy, walks.prices) for kind, legs in some.items()}
        for some in (plain, reducing)
    )
    beside_all = {Pass.FORWARD: beside_gathers}
    return Passes(
        plain,
        {kind: beside_all.get(kind, beside_reduces)(legs, strategy, walks.prices) for kind, legs in reducing.items()},
    )


def _legs(
    layers: list[tuple[int, list[Move]]],
    gathers: dict[int, tuple[Move, ...]],
    reduces: dict[int, tuple[Move, ...]],
    label: str,
    join: Join,
    begins: Collection[int] = (),
) -> tuple[Leg, ...]:
    """Layers in a row make one leg, up to one that gathers its weights or after which gradients are reduced.

    The layers `begins` begin a leg of their own; `join` makes one list of the moves of several layers.
    """
    legs: list[Leg] = []
    run: list[list[Move]] = []

    def close(gathered: tuple[Move, ...], reduced: tuple[Move, ...], layer: int) -> None:
        if any(run) or gathered or reduced:
            legs.append(Leg(tuple(join(run, label)), gathered, reduced, layer))
        run.clear()

    for at, moves in layers:
        if gathers.get(at) or at in begins:
            close((), (), -1)
        run.append(moves)
        if gathers.get(at) or reduces.get(at):
            close(gathers.get(at, ()), reduces.get(at, ()), at)
    close((), (), -1)
    return tuple(legs)


def buckets(
    layers: Sequence[int], shares: Shares, strategy: Strategy, element_bytes: float, beside: Iterable[int] = ()
) -> dict[int, tuple[Move, ...]]:
    """Collectives on gradients by the layer whose backward pass completes them.

    Layers are collected from the last to the first until a bucket is full. A layer is not divided: one that holds more
    than a bucket is reduced behind its backward pass in as many collectives as it fills. Experts are reduced among
    the ranks that have them, in buckets of their own; ZeRO-3 reduces every layer by itself.
    """
    per_gradient = gradient_bytes(strategy, element_bytes)
    act = Act.REDUCE_SCATTER if strategy.zero else Act.ALL_REDUCE
    bucket = strategy.order.bucket_bytes
    dense = _dense_parameters(layers, shares, beside)
    found: dict[int, list[Move]] = {}
    for scope, ways, counts in (
        (Scope.DATA, strategy.replicas, dense),
        (Scope.EXPERT_DATA, strategy.expert_replicas, {at: shares[at].expert_parameters for at in layers}),
    ):
        full = 0.0
        waiting = [at for at in reversed(layers) if counts[at]] if ways > 1 else []
        for at in waiting:
            full += counts[at] * per_gradient
            if full >= bucket or strategy.zero >= 3 or at == waiting[-1]:
                repeats = max(1, round(full / bucket)) if bucket else 1
                found.setdefault(at, []).append(Move(act, scope, full, STREAM["data"], "gradients", repeats, at))
                full = 0.0
    return {at: tuple(moves) for at, moves in found.items()}


def _dense_parameters(layers: Sequence[int], shares: Shares, beside: Iterable[int]) -> dict[int, int]:
    """Parameters of each layer that all data ranks train; a copy of an embedding of another stage is among them."""
    own = {size for at in (*layers, *beside) for size in shares[at].embeddings}
    return {at: shares[at].parameters + (0 if shares[at].tied in own else shares[at].tied) for at in layers}


def _frozen_parameters(layers: Sequence[int], shares: Shares, beside: Iterable[int]) -> dict[int, int]:
    """The same of parameters that are never updated."""
    own = {size for at in (*layers, *beside) for size in shares[at].embeddings}
    ties = {at: shares[at].frozen_tied for at in layers}
    return {at: shares[at].frozen + (0 if ties[at] in own else ties[at]) for at in layers}


def _gathers(share: Share, parameters: int, strategy: Strategy, element_bytes: float) -> tuple[Move, ...]:
    """All-gathers of the weights of one layer that are shared out over data ranks."""
    label = f"{share.layer.name} weights"
    sizes = (
        (Scope.DATA, strategy.replicas, parameters),
        (Scope.EXPERT_DATA, strategy.expert_replicas, share.expert_parameters + share.frozen_experts),
    )
    return tuple(
        Move(Act.ALL_GATHER, scope, count * element_bytes, STREAM["zero"], label)
        for scope, ways, count in sizes
        if ways > 1 and count
    )
