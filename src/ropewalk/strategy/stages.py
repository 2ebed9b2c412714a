"""Cut a model into pieces that follow each other: the slowest as fast as can be, the others as even as can be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import StrategyError
from ropewalk.strategy.prices import KeptPrices
from ropewalk.strategy.shares import Share
from ropewalk.strategy.strategy import Strategy
from ropewalk.workload.exchange import Exchange
from ropewalk.workload.workload import Workload

SLACK = 1e-9
"""Relative room for rounding when sums of costs are compared."""


def balanced(costs: ArrayLike, pieces: int) -> tuple[int, ...]:
    """The first layer of each piece: the largest piece is as small as possible, then the sum of squares is.

    >>> balanced([1, 1, 1, 1, 4], 2)
    (0, 4)
    """
    cost = np.asarray(costs, np.float64)
    if pieces > len(cost):
        raise StrategyError(f"{len(cost)} layers do not fill {pieces} stages: give {len(cost)} stages or fewer")
    from ropewalk.strategy._balance_kernel import balance  # loads Numba, which strategies that are only read do without

    firsts = balance(np.concatenate([[0.0], np.cumsum(cost)]), pieces, SLACK)
    return tuple(firsts.tolist())


@dataclass(frozen=True)
class Pieces:
    """The pieces of a model, and the stage of each."""

    firsts: tuple[int, ...]
    """The first layer of every piece."""
    layers: int
    homes: tuple[int, ...]
    """The stage of every piece; where stages hold the model twice, those of its second copy follow."""

    @property
    def count(self) -> int:
        return len(self.firsts)

    def stage(self, piece: int) -> int:
        return self.homes[piece]

    def on_stage(self, stage: int) -> list[int]:
        """The pieces that a stage holds, of all copies."""
        return [piece for piece, home in enumerate(self.homes) if home == stage]

    def twin(self, stage: int) -> int:
        """The stage that holds the other copy of the same pieces, -1 where there is one copy."""
        if len(self.homes) == self.count:
            return -1
        return self.homes[(self.homes.index(stage) + self.count) % len(self.homes)]

    def of(self, piece: int) -> range:
        """The layers of a piece; those of the second copy of the model are counted behind those of the first.

        >>> Pieces((0, 2), 5, (0, 1, 1, 0)).of(3)
        range(7, 10)
        """
        copy, inner = divmod(piece, self.count)
        ends = (*self.firsts[1:], self.layers)
        return range(copy * self.layers + self.firsts[inner], copy * self.layers + ends[inner])

    def layers_of_stage(self, stage: int) -> list[int]:
        return [layer for piece in self.on_stage(stage) for layer in self.of(piece)]

    def piece_of_layer(self) -> NDArray[np.int64]:
        return np.searchsorted(self.firsts, np.arange(self.layers), side="right") - 1

    def crossings(self, workload: Workload) -> dict[tuple[int, int], int]:
        """Elements that each piece hands to each later one; a layer read by several layers of a piece is sent once."""
        piece = self.piece_of_layer().tolist()
        handed = {
            (source, piece[number])
            for number, layer in enumerate(workload.layers)
            for source in layer.inputs
            if piece[source] != piece[number]
        }
        found: dict[tuple[int, int], int] = {}
        for source, target in sorted(handed):
            ends = piece[source], target
            found[ends] = found.get(ends, 0) + workload.layers[source].output_elements
        return found


def cut(workload: Workload, strategy: Strategy, shares: tuple[Share, ...], prices: KeptPrices) -> Pieces:
    """The pieces that the strategy names, or those balanced by the seconds that their layers take a rank."""
    firsts = tuple(one.first for one in strategy.parts) or strategy.stages
    if firsts is None:
        once = shares[: len(workload.layers)]
        # Layers that are alike have the same tuple of operators.
        alike = {id(share.layer.operators): share for share in once}
        seconds = {which: seconds_of(share, prices) for which, share in alike.items()}
        firsts = balanced([seconds[id(share.layer.operators)] for share in once], strategy.pieces)
    return Pieces(firsts, len(workload.layers), strategy.homes)


def seconds_of(share: Share, prices: KeptPrices) -> float:
    """Seconds of both passes of a layer on one rank, recomputation and communication aside."""
    operators = tuple(op for op in share.layer.operators if not isinstance(op, Exchange))
    return (prices.forward(operators) + prices.backward(operators)).seconds
