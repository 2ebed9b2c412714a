"""What the steps of one model have in common, however it is split and run: worked out once and kept."""

from __future__ import annotations

from collections.abc import Hashable

from ropewalk.strategy.memory import updated
from ropewalk.strategy.prices import KeptPrices, Pace, Prices
from ropewalk.strategy.shares import Share, shares_of
from ropewalk.strategy.stages import Pieces, cut
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.moves import backward_moves, forward_moves
from ropewalk.task.lower.paced import Launched, launched, together
from ropewalk.task.lower.passes import Passes, Walks, passes_of
from ropewalk.workload.workload import Workload

MOST_PASSES = 64
"""Strategies whose passes are kept: those that differ in schedule, placement or collectives alone have the same."""


def _as_passes_see(view: Strategy) -> Hashable:
    """What the passes of a stage depend on, beside its layers."""
    return (
        view.zero, view.regather, view.recompute == "stage", view.splits_backward, view.replicas, view.expert_replicas,
        view.order.bucket_bytes, view.gradient_bytes, view.tensor_overlap, view.side_by_side,
    )  # fmt: skip


class Known:
    """Prices, shares of layers, cuts, moves of passes. Whoever lowers many strategies of a model hands it on.

    Layers that are alike have the same tuple of operators, and are known by its identity: shares stay as they are for
    as long as they are kept here.
    """

    def __init__(self, prices: Prices | KeptPrices) -> None:
        self.listed = prices if isinstance(prices, KeptPrices) else KeptPrices(prices)
        self.walks = Walks(Pace(self.listed))
        self._shares: dict[Hashable, tuple[Workload, tuple[Share, ...]]] = {}
        self._pieces: dict[Hashable, Pieces] = {}
        self._launched: dict[tuple[int, str, int, bool], Launched] = {}
        self._passes: dict[Hashable, list[Passes]] = {}

    def shares(self, workload: Workload, strategy: Strategy) -> tuple[Share, ...]:
        """The share of every layer of this workload."""
        key = (
            id(workload), strategy.tensor, strategy.sequence_parallel, strategy.context, strategy.context_exchange,
            strategy.expert, strategy.fold_experts, strategy.shared_overlap, strategy.data,
            strategy.recompute, strategy.choices, strategy.copies, strategy.parts and strategy, strategy.zero >= 3,
            strategy.regather, strategy.gradient_bytes,
        )  # fmt: skip
        if key not in self._shares:
            self._shares[key] = workload, shares_of(workload, strategy)
        return self._shares[key][1]

    def pieces(self, workload: Workload, strategy: Strategy, shares: tuple[Share, ...]) -> Pieces:
        """The cut of the model; `shares` are those that are kept here."""
        key = id(shares), strategy.pieces, strategy.stages, strategy.homes
        if key not in self._pieces:
            self._pieces[key] = cut(workload, strategy, shares, self.listed)
        return self._pieces[key]

    def pace(self, stage: int, pieces: Pieces, shares: tuple[Share, ...], strategy: Strategy) -> float:
        """How much longer a stage takes because its host launches all that it computes in a step."""
        held = [shares[at] for at in pieces.layers_of_stage(stage)]
        many = strategy.micro_batches / strategy.copies
        update = self.listed.update(*updated(strategy, held), strategy.optimiser)
        whole = together(self._launched_for(share, strategy) for share in held)
        return whole.pace(many, update, side_by_side=strategy.side_by_side)

    def _launched_for(self, share: Share, strategy: Strategy) -> Launched:
        """Both passes of a layer, and what is computed again between them."""
        alike = id(share.layer.operators), share.recompute, share.split.expert, strategy.tensor_overlap
        if alike not in self._launched:
            moves = [self.walks.moves(walk, share, strategy, summed=True) for walk in (forward_moves, backward_moves)]
            self._launched[alike] = launched(share, self.listed, *moves)
        return self._launched[alike]

    def passes(
        self, pieces: Pieces, shares: tuple[Share, ...], views: tuple[Strategy, ...], *, condense: bool, apart: bool
    ) -> list[Passes]:
        """The passes of every piece; `pieces` and `shares` are those that are kept here."""
        written = tuple(map(_as_passes_see, views if views[0].parts else views[:1]))
        key = id(pieces), id(shares), written, condense, apart
        if key not in self._passes:
            if len(self._passes) == MOST_PASSES:
                self._passes.pop(next(iter(self._passes)))
            self._passes[key] = self._written(pieces, shares, views, condense=condense, apart=apart)
        return self._passes[key]

    def _written(
        self, pieces: Pieces, shares: tuple[Share, ...], views: tuple[Strategy, ...], *, condense: bool, apart: bool
    ) -> list[Passes]:
        on_stage = [pieces.on_stage(stage) for stage in range(len(views))]
        found = []
        for piece, stage in enumerate(pieces.homes):
            inner = f".{on_stage[stage].index(piece)}" if len(pieces.homes) > len(views) else ""
            beside = [at for other in on_stage[stage] if other != piece for at in pieces.of(other)]
            found.append(
                passes_of(
                    pieces.of(piece), shares, views[stage], self.walks, f"stage {stage}{inner}", condense=condense,
                    beside=beside, apart=apart,
                )
            )  # fmt: skip
        return found
