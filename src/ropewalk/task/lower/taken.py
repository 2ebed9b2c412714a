"""What collectives beside a pass take from its kernels.

Under ZeRO-3 weights are gathered and gradients scattered while layers compute; otherwise gradients are reduced beside
the layers behind them, and where passes run side by side, one exchanges tokens while the other computes. NCCL's kernels
hold as many multiprocessors as they have channels for as long as they run, so kernels beside them have the rest. A pass
that computes for W seconds beside collectives of c seconds takes W + c t, where t is the part that is taken, and
W / (1 - t) where the collectives are longer than that. They take as long as rings at the speed of NVLink, or of the
NICs of the ranks of a server that take part. Chunks of products that tensor ranks pass on are moved by copy engines,
which take no multiprocessors. What they take of the memory's bandwidth and of the power comes on top and is not
counted: on an H200 a copy by 16 thread blocks at 1 TB/s makes products of 8192 x 8192 1.30 times as long, of which the
multiprocessors are 1.14.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ropewalk.strategy.prices import Inside, Pace
from ropewalk.strategy.shares import Share
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.step import Act
from ropewalk.workload.flat import FlatCopies

if TYPE_CHECKING:
    from ropewalk.task.lower.moves import Move
    from ropewalk.task.lower.passes import Leg


def with_taken(moves: list[Move], share: Share, prices: Pace, *, back: bool) -> list[Move]:
    """The moves of a pass, its computation longer by what collectives beside it take."""
    first, inside = next(iter(share.layer.operators), None), prices.listed.inside
    if not isinstance(first, FlatCopies) or inside is None or not inside.taken:
        return moves
    work_s = _work_s(moves)
    beside_s = first.beside_bytes(prices.element_bytes, back=back) / inside.shared_out_bytes_s(
        first.ranks, share.split.tensor
    )
    return list(_longer(moves, _taken_s(beside_s, work_s, inside.taken)))


def beside_reduces(legs: tuple[Leg, ...], strategy: Strategy, prices: Pace) -> tuple[Leg, ...]:
    """The legs of a backward pass, longer by what gradients take that are reduced beside the legs behind them."""
    inside = prices.listed.inside
    if inside is None or not inside.taken or strategy.zero == 3:
        return legs
    found, running_s = [], 0.0
    for leg in legs:
        work_s = _work_s(leg.moves)
        beside_s = min(running_s, work_s / (1 - inside.taken))
        found.append(replace(leg, moves=_longer(leg.moves, beside_s * inside.taken)))
        running_s += sum(_reduce_s(move, strategy, inside) for move in leg.reduces) - beside_s
    return tuple(found)


def beside_gathers(legs: tuple[Leg, ...], strategy: Strategy, prices: Pace) -> tuple[Leg, ...]:
    """The legs of a forward pass, longer by what updated weights take that are gathered beside them for those behind.

    Gathers run from the beginning on, and a leg waits for its own: what is left beside it is what others wait for.
    """
    inside = prices.listed.inside
    if inside is None or not inside.taken:
        return legs
    found = []
    left_s = sum(_reduce_s(move, strategy, inside) for leg in legs for move in leg.gathers)
    for leg in legs:
        left_s = max(0.0, left_s - sum(_reduce_s(move, strategy, inside) for move in leg.gathers))
        beside_s = min(left_s, _work_s(leg.moves) / (1 - inside.taken))
        found.append(replace(leg, moves=_longer(leg.moves, beside_s * inside.taken)))
        left_s -= beside_s
    return tuple(found)


def beside_exchanges(legs: tuple[Leg, ...], strategy: Strategy, prices: Pace) -> tuple[Leg, ...]:
    """The legs of a pass, longer by what exchanges of tokens take that run while another pass computes.

    Passes side by side take from each other; each is charged for its own exchanges.
    """
    inside = prices.listed.inside
    if inside is None or not inside.taken or not strategy.side_by_side:
        return legs
    found = []
    for leg in legs:
        exchange_s = sum(_exchange_s(move, strategy, inside) for move in leg.moves if move.act is Act.ALL_TO_ALL)
        more_s = _taken_s(exchange_s, _work_s(leg.moves), inside.taken)
        found.append(replace(leg, moves=_longer(leg.moves, more_s)))
    return tuple(found)


def _taken_s(beside_s: float, work_s: float, part: float) -> float:
    return min(beside_s * part, work_s * part / (1 - part))


def _work_s(moves: Sequence[Move]) -> float:
    return sum(move.amount for move in moves if move.act is Act.COMPUTE)


def _longer(moves: Sequence[Move], more_s: float) -> tuple[Move, ...]:
    """The moves with more seconds of computing, if they compute."""
    at = next((at for at, move in enumerate(moves) if move.act is Act.COMPUTE), None)
    if at is None or not more_s:
        return tuple(moves)
    return (*moves[:at], replace(moves[at], amount=moves[at].amount + more_s), *moves[at + 1 :])


def _reduce_s(move: Move, strategy: Strategy, inside: Inside) -> float:
    """Seconds of reducing gradients, or of gathering weights, among those who hold the same weights."""
    ranks = strategy.expert_replicas if move.scope.name == "EXPERT_DATA" else strategy.replicas
    halves = 2 if move.act is Act.ALL_REDUCE else 1
    return halves * move.amount * (ranks - 1) / ranks / inside.shared_out_bytes_s(ranks, strategy.tensor)


def _exchange_s(move: Move, strategy: Strategy, inside: Inside) -> float:
    return sent_s(move.amount, strategy.expert, 1 if strategy.fold_experts else strategy.tensor, inside)


def sent_s(size_bytes: float, ranks: int, tensor: int, inside: Inside) -> float:
    """Seconds of an all-to-all of so many expert ranks, beside tensor ranks: inside servers, and beyond by the NICs."""
    together = max(1, min(ranks, inside.gpus // tensor))
    within, beyond = (together - 1) / ranks, (ranks - together) / ranks
    across_s = size_bytes * beyond / inside.across_bytes_s if beyond and inside.across_bytes_s else 0.0
    return max(size_bytes * within / inside.bytes_s, across_s)
