"""What collectives beside a pass take from its kernels.

Under ZeRO-3 weights are gathered and gradients scattered while layers compute. NCCL's kernels hold as many
multiprocessors as they have channels for as long as they run, so kernels beside them have the rest. A pass that
computes for W seconds beside collectives of c seconds takes W + c t, where t is the part that is taken, and W / (1 - t)
where the collectives are longer than that. They take as long as rings at the speed of NVLink, or of the NICs of the
ranks of a server that take part. What they take of the memory's bandwidth and of the power comes on top and is not
counted: on an H200 a copy by 16 thread blocks at 1 TB/s makes products of 8192 x 8192 1.30 times as long, of which the
multiprocessors are 1.14.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ropewalk.strategy.prices import Pace
from ropewalk.strategy.shares import Share
from ropewalk.task.step import Act
from ropewalk.workload.flat import FlatCopies

if TYPE_CHECKING:
    from ropewalk.task.lower.moves import Move


def with_taken(moves: list[Move], share: Share, prices: Pace, *, back: bool) -> list[Move]:
    """The moves of a pass, its computation longer by what collectives beside it take."""
    first, inside = next(iter(share.layer.operators), None), prices.listed.inside
    if not isinstance(first, FlatCopies) or inside is None or not inside.taken:
        return moves
    work_s = sum(move.amount for move in moves if move.act is Act.COMPUTE)
    beside_s = first.beside_bytes(prices.element_bytes, back=back) / inside.shared_out_bytes_s(
        first.ranks, share.split.tensor
    )
    more_s = min(beside_s * inside.taken, work_s * inside.taken / (1 - inside.taken))
    at = next((at for at, move in enumerate(moves) if move.act is Act.COMPUTE), None)
    if at is None:
        return moves
    return [*moves[:at], replace(moves[at], amount=moves[at].amount + more_s), *moves[at + 1 :]]
