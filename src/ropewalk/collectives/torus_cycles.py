"""Two edge-disjoint Hamiltonian cycles of every a × b torus with a, b >= 3, which together use every edge.

The edges are coloured: `right[i, j]` and `down[i, j]` say whether the first cycle takes the edge from (i, j) to its
right or lower neighbour; the second cycle takes the others.

*Sides of equal parity.* The first cycle runs along row i but for one edge and goes down to row i+1 at column v(i), and
v(i+1) is a neighbour of v(i). The second cycle then runs down all columns but one in each gap between rows. Its strands
are beads on a ring of b places with one hole, v(i); the hole moves by one place a row and beads never overtake each
other. When the hole has gone round once, every bead has moved up one place: the strands are one cycle. On the n × n
torus this is the pair of Gray codes (x, y) -> (x, y - x) and its mirror image.

*Sides of different parity.* The 3 × 4 torus below grows by two rows or two columns at a time. Two rows are inserted
where the first cycle has two neighbouring edges in a gap: one of the two strands covers the new rows. Two columns are
inserted where the second cycle has one edge in a gap, and its hole steps aside and back.

Kotzig (1973) proved that all these decompositions exist.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Colours = tuple[NDArray[np.bool_], NDArray[np.bool_]]


def two_cycles(rows: int, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both cycles as orders of the vertices row*columns + column, for sides of 3 or more."""
    right, down = _colours(rows, columns)
    return _follow(right, down), _follow(~right, ~down)


def _colours(rows: int, columns: int) -> Colours:
    if (rows - columns) % 2 == 0:
        return _by_hole(rows, columns) if rows >= columns else _transposed(_by_hole(columns, rows))
    return _by_growth(rows, columns) if rows % 2 else _transposed(_by_growth(columns, rows))


def _transposed(colours: Colours) -> Colours:
    right, down = colours
    return down.T.copy(), right.T.copy()


def _by_hole(rows: int, columns: int) -> Colours:
    """rows >= columns, of equal parity: the hole goes round the columns and then back again but for one turn."""
    moves = np.where(np.arange(rows) < (rows + columns) // 2, -1, 1)
    hole = np.cumsum(moves) % columns
    before = np.roll(hole, 1)
    row = np.arange(rows)
    right = np.ones((rows, columns), bool)
    right[row, np.where(moves > 0, before, hole)] = False
    down = np.zeros((rows, columns), bool)
    down[row, hole] = True
    return right, down


def _by_growth(rows: int, columns: int) -> Colours:
    """rows odd, columns even: grow the shorter side on the spot, then the longer one with all room to move."""
    right = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 1, 0]], bool)
    down = np.array([[0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 0, 0]], bool)
    if rows > columns:
        return _more_rows(*_more_columns(right, down, _aside(columns - 4)), _there_and_back(rows - 3))
    return _more_columns(*_more_rows(right, down, _aside(rows - 3)), _there_and_back(columns - 4))


def _aside(steps: int) -> NDArray[np.int64]:
    """How far a hole is from home after 0, 1, … steps when every second step takes it back."""
    return np.arange(steps + 1) % 2


def _there_and_back(steps: int) -> NDArray[np.int64]:
    """How far a hole is from home after 0, 1, … steps when it turns round once."""
    return steps // 2 - np.abs(np.arange(steps + 1) - steps // 2)


def _more_rows(right: NDArray[np.bool_], down: NDArray[np.bool_], far: NDArray[np.int64]) -> Colours:
    """Behind the last row the first cycle has the edges of columns 0 and 1; the pair of them walks through new rows.

    One of the two strands runs around a new row to the other side of its partner, the partner goes straight down.
    """
    columns = right.shape[1]
    near = np.minimum(far[1:], far[:-1])
    new_right, new_down = np.ones((len(near), columns), bool), np.zeros((len(near), columns), bool)
    row = np.arange(len(near))
    for place in (0, 1):
        new_right[row, (near + place) % columns] = False
        new_down[row, (far[1:] + place) % columns] = True
    return np.vstack([right, new_right]), np.vstack([down, new_down])


def _more_columns(right: NDArray[np.bool_], down: NDArray[np.bool_], far: NDArray[np.int64]) -> Colours:
    """Between columns 2 and 3 the second cycle has the edge of row 1 alone; this hole walks through new columns."""
    rows = right.shape[0]
    near = np.minimum(far[1:], far[:-1])
    new_right, new_down = np.ones((rows, len(near)), bool), np.zeros((rows, len(near)), bool)
    column = np.arange(len(near))
    new_right[(far[1:] + 1) % rows, column] = False
    new_down[(near + 1) % rows, column] = True
    return np.hstack([right[:, :3], new_right, right[:, 3:]]), np.hstack([down[:, :3], new_down, down[:, 3:]])


def _follow(right: NDArray[np.bool_], down: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The vertices of a coloured cycle in the order in which it visits them, from vertex 0 on."""
    vertex = np.arange(right.size).reshape(right.shape)
    ways = [
        (right, np.roll(vertex, -1, axis=1)),
        (down, np.roll(vertex, -1, axis=0)),
        (np.roll(right, 1, axis=1), np.roll(vertex, 1, axis=1)),
        (np.roll(down, 1, axis=0), np.roll(vertex, 1, axis=0)),
    ]
    taken = np.stack([mask.ravel() for mask, _ in ways], axis=1)
    towards = np.stack([there.ravel() for _, there in ways], axis=1)
    neighbours = towards[taken].reshape(-1, 2).tolist()
    order = [0]
    at, came_from = neighbours[0][0], 0
    while at != 0:
        order.append(at)
        one, other = neighbours[at]
        at, came_from = (other if one == came_from else one), at
    return np.array(order, np.int64)
