"""What of a tensor-parallel collective hides behind the product beside it.

Transformer Engine cuts the product that reads what is gathered, or makes what is scattered, into as many chunks as
there are tensor ranks (user buffers, Megatron-Core's `--tp-comm-overlap`): while a chunk is multiplied, the next one
comes from a neighbour, or the one before leaves. One chunk is a rank's own, so t - 1 of t chunks hide the exchange.
Chunks are priced as the smaller products that they are, and what they take longer is counted with the collective.
Gradients of inputs are scattered while those of the weights are computed, as a whole. Where all that takes longer than
a product behind a collective, there are no chunks.

It takes NVLink between all tensor ranks and sequence parallelism, and concerns linear layers alone: not the embedding,
the head over words or experts.
"""

from __future__ import annotations

from dataclasses import replace

from ropewalk.strategy.prices import Pace
from ropewalk.strategy.shares import Share
from ropewalk.strategy.strategy import OnStage, Strategy
from ropewalk.workload.adapted import bare
from ropewalk.workload.dense import Linear
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.operator import Operator, Role, part


def beside(operators: tuple[Operator, ...], at: int) -> Linear | None:
    """The product of Transformer Engine that reads what an exchange gathers, or makes what it scatters."""
    exchange = operators[at]
    if not isinstance(exchange, Exchange) or exchange.meeting not in (Meeting.ENTER, Meeting.LEAVE):
        return None
    enters = exchange.meeting is Meeting.ENTER
    row = operators[at + 1 :] if enters else operators[:at][::-1]
    found = next((bare(op) for op in row if op.forward()), None)
    wanted = Role.COLUMNS if enters else Role.ROWS
    if isinstance(found, Linear) and found.role is wanted and found.transformer_engine and not found.exact:
        return found
    return None


class Overlap:
    """The tensor-parallel collectives of one pass through a layer, and what is left of them.

    What is left is a collective that starts up, like any other. Where it is less than a start-up, it is added to what
    is left of the next one.
    """

    def __init__(self, share: Share, strategy: Strategy, prices: Pace, *, back: bool, weights_apart: bool) -> None:
        self.prices, self.ways, self.back, self.weights_apart = prices, share.split.tensor, back, weights_apart
        inside = prices.listed.inside
        able = share.split.sequence and strategy.tensor_overlap and not isinstance(strategy, OnStage)
        together = inside is not None and inside.adjacent and inside.gpus % self.ways == 0
        self.inside = inside if able and together else None
        self.owed_s = 0.0

    def left(self, size_bytes: float, exchange: Exchange, product: Linear | None) -> float | None:
        """Bytes that are left of a collective of so many; None where all of it is hidden."""
        if self.inside is None or product is None:
            return size_bytes
        alone_s = size_bytes * (self.ways - 1) / self.ways / self.inside.bytes_s
        start_up_s = self.inside.start_up_s
        exposed_s = self._exposed(alone_s, exchange, product)
        if exposed_s >= start_up_s + alone_s:
            return size_bytes
        self.owed_s += exposed_s
        if self.owed_s <= start_up_s:
            return None
        part_s = min(self.owed_s - start_up_s, alone_s)
        self.owed_s -= start_up_s + part_s
        return size_bytes * part_s / alone_s

    def _exposed(self, alone_s: float, exchange: Exchange, product: Linear) -> float:
        """Seconds that a collective which takes so long behind its start-up adds to a pass."""
        if self.back and exchange.meeting is Meeting.ENTER:
            beside_s = 0.0 if self.weights_apart else self.prices.backward_weight((product,))
            return max(0.0, alone_s - beside_s)
        price = self.prices.backward_input if self.back else self.prices.forward
        whole_s, chunk_s = price((product,)), price((replace(product, rows=part(product.rows, self.ways)),))
        more_s = max(0.0, self.ways * chunk_s - whole_s)
        return more_s + max(0.0, alone_s - (self.ways - 1) * chunk_s)
