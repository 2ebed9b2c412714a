"""Colours for the edges of a graph with parallel edges so that no vertex has a colour twice, with as few as possible.

A bipartite graph needs as many colours as its busiest vertex has edges (König), and alternating chains find them. In
other graphs an odd cycle may need one more, and parallel edges more still. Deciding it is hard in general, so chains
are followed by a search that stirs colours and takes them away from edges in the way; it gives up after a number of
steps that only depends on the graph, so a failed search is no proof that no colouring exists.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

PATIENCE = 10
"""Steps of the search, for each edge of the graph, after which a number of colours counts as too few."""


def colour_edges(
    vertices: int,
    ends: Sequence[tuple[int, int]],
    colours: int,
    start: Sequence[int] | None = None,
    may_drop: Sequence[bool] | None = None,
) -> list[int] | None:
    """A colour for every edge, below `colours`; None where none was found.

    `start` gives edges a colour to begin with (-1: none), which they keep where possible. Edges that `may_drop` names
    stay without one (-1) where the search finds no place for all.

    >>> colour_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)], 2)
    [0, 1, 0, 1]
    >>> colour_edges(3, [(0, 1), (1, 2), (2, 0)], 2) is None
    True
    >>> colour_edges(3, [(0, 1), (1, 2), (2, 0)], 2, may_drop=[True, False, False])
    [-1, 1, 0]
    """
    busiest = np.bincount(np.array(ends, np.int64).ravel(), minlength=1).max()
    if busiest > colours:
        return None
    board = _Board(vertices, ends, colours)
    waiting: deque[int] = deque()
    for edge in range(len(ends)):
        wished = -1 if start is None else start[edge]
        if not (0 <= wished < colours and board.put(edge, wished)):
            waiting.append(edge)
    # Only the raw stream of PCG64 is promised to be the same in every NumPy.
    stream = np.random.PCG64(len(ends))
    patience = enough = PATIENCE * len(ends) + 1000
    while waiting:
        if patience <= 0 and may_drop is not None and all(may_drop[edge] for edge in waiting):
            break
        if patience <= (0 if may_drop is None else -enough):
            return None
        edge = waiting.popleft()
        if board.fits(edge):
            continue
        patience -= 1
        draw = int(stream.random_raw())
        if draw % 2:
            board.stir(edge, draw // 2)
            waiting.append(edge)
        else:
            waiting.extend(board.force(edge, draw // 2))
    return board.colour


class _Board:
    """Which edge has which colour at which vertex."""

    def __init__(self, vertices: int, ends: Sequence[tuple[int, int]], colours: int) -> None:
        self.ends, self.colours = ends, colours
        self.colour = [-1] * len(ends)
        self.at = [[-1] * colours for _ in range(vertices)]

    def put(self, edge: int, colour: int) -> bool:
        """Colour an edge if that colour is free at both of its ends."""
        a, b = self.ends[edge]
        if self.at[a][colour] >= 0 or self.at[b][colour] >= 0:
            return False
        self.colour[edge] = colour
        self.at[a][colour] = self.at[b][colour] = edge
        return True

    def take(self, edge: int) -> int:
        """Uncolour an edge and return the colour it had."""
        colour = self.colour[edge]
        for end in self.ends[edge]:
            self.at[end][colour] = -1
        self.colour[edge] = -1
        return colour

    def fits(self, edge: int) -> bool:
        """Colour an edge with a colour free at both ends, or make one free by exchanging two colours along a chain."""
        a, b = self.ends[edge]
        free_a, free_b = self._free(a), self._free(b)
        both = [colour for colour in free_a if self.at[b][colour] < 0]
        if both:
            return self.put(edge, both[0])
        for one in free_a:
            for other in free_b:
                if self._exchange(b, one, other, a):
                    return self.put(edge, one)
        return False

    def force(self, edge: int, choice: int) -> list[int]:
        """Give an edge a colour that is free at one of its ends and uncolour the edge that has it at the other."""
        a, b = self.ends[edge]
        wanted = self._free(a) + self._free(b)
        colour = wanted[choice % len(wanted)]
        taken = sorted({self.at[end][colour] for end in (a, b)} - {-1})
        for other in taken:
            self.take(other)
        self.put(edge, colour)
        return taken

    def stir(self, edge: int, choice: int) -> None:
        """Make another colour free at an end of the edge, by exchanging it with the free one along a chain.

        Without this the search would circle on two colours.
        """
        choice, end = divmod(choice, 2)
        vertex = self.ends[edge][end]
        free = self._free(vertex)
        choice, which = divmod(choice, len(free))
        colour = choice % self.colours
        if self.at[vertex][colour] >= 0:
            self._exchange(vertex, colour, free[which], -1)

    def _free(self, vertex: int) -> list[int]:
        return [colour for colour, edge in enumerate(self.at[vertex]) if edge < 0]

    def _exchange(self, begin: int, one: int, other: int, avoid: int) -> bool:
        """Exchange two colours on the chain from `begin` that starts with colour `one`; not if it ends at `avoid`."""
        chain, vertex, colour = [], begin, one
        while (edge := self.at[vertex][colour]) >= 0:
            chain.append(edge)
            a, b = self.ends[edge]
            vertex = b if vertex == a else a
            colour = other if colour == one else one
        if vertex == avoid:
            return False
        before = [self.take(edge) for edge in chain]
        for edge, colour in zip(chain, before, strict=True):
            self.put(edge, other if colour == one else one)
        return True
