"""The integer programs of OCS-vClos, solved by HiGHS: they decide where quick ways give up.

Virtual leafs on one leaf are interchangeable, so circuits are counted by leaf, spine and switch: the m * y circuits
between a leaf with m virtual leafs and a spine with y virtual spines can always be dealt out evenly.
Limits are numbers of nodes, never seconds: the same state gives the same answer on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy import highs
from ropewalk.tenancy.linear_rows import ConstraintRows
from ropewalk.tenancy.optical.fibres import FreeFibres

NODE_LIMIT = 2_000
RELATIVE_GAP = 0.8
"""As published: nearly any feasible answer is good enough."""


@dataclass(frozen=True)
class ProgramUndecided:
    """The program was too large to ask, or the node limit came before an answer."""


@dataclass(frozen=True)
class Laid:
    """Circuits that an integer program has chosen."""

    spines: NDArray[np.int64]
    """Virtual spines on every spine."""
    leaf: NDArray[np.int64]
    spine: NDArray[np.int64]
    switch: NDArray[np.int64]
    """Columns of the circuits."""

    def switches(self) -> dict[tuple[int, int], list[int]]:
        """(leaf, spine): the switches of the circuits between the two, ascending."""
        found: dict[tuple[int, int], list[int]] = {}
        for leaf, spine, switch in sorted(
            zip(self.leaf.tolist(), self.spine.tolist(), self.switch.tolist(), strict=True)
        ):
            found.setdefault((leaf, spine), []).append(switch)
        return found


def network_program(
    fibres: FreeFibres,
    leafs: NDArray[np.int64],
    width: int,
    *,
    usable: NDArray[np.bool_] | None = None,
    node_limit: int = NODE_LIMIT,
    gap: float = RELATIVE_GAP,
) -> Laid | ProgramUndecided | None:
    """Choose spines and switches for virtual leafs that are fixed (program 5b); None where there is no way.

    y[j] virtual spines on spine j sum to `width`; a leaf with m virtual leafs gets m y[j] circuits to it; no fibre is
    used twice. Of the spines that are touched, those with few free ports are preferred.
    """
    usable = np.ones(len(fibres.spine), bool) if usable is None else usable
    leaf, spine, switch = _possible(fibres, np.flatnonzero(leafs), np.flatnonzero(usable))
    spines, circuits = len(fibres.spine), len(leaf)
    most = np.where(usable, fibres.of_spine // max(int(leafs.sum()), 1), 0)
    y, touched, c = np.arange(spines), spines + np.arange(spines), 2 * spines + np.arange(circuits)
    rows = ConstraintRows(2 * spines + circuits)
    rows.add([width], [width], (np.zeros(spines), y, 1.0))
    pairs = np.flatnonzero(leafs)[:, None] * spines + np.arange(spines)
    _, pair = np.unique(np.concatenate([pairs.ravel(), leaf * spines + spine]), return_inverse=True)
    count = pairs.size
    demand = np.repeat(leafs[leafs > 0], spines)
    rows.add(np.zeros(count), 0.0, (pair[count:], c, 1.0), (pair[:count], np.tile(y, count // spines), -demand))
    _port_rows(rows, fibres, leaf, spine, switch, c)
    rows.add(np.full(spines, -np.inf), 0.0, (y, y, 1.0), (y, touched, -most))
    cost = np.concatenate([np.zeros(spines), fibres.of_spine, np.zeros(circuits)])
    upper = np.concatenate([most, np.ones(spines), np.ones(circuits)])
    solved = solve(cost, rows, upper, node_limit, gap)
    if not isinstance(solved, np.ndarray):
        return solved
    taken = solved[c] > 0
    return Laid(solved[y], leaf[taken], spine[taken], switch[taken])


def star_program(
    fibres: FreeFibres,
    spine: int,
    idle: NDArray[np.int64],
    servers: int,
    gpus_per_server: int,
    *,
    node_limit: int = NODE_LIMIT,
) -> ProgramUndecided | dict[int, list[int]] | None:
    """Whole servers anywhere with a circuit of each GPU to one spine: the switches by leaf, or None."""
    leaf, switch = np.nonzero(fibres.leaf & (fibres.spine[spine] > 0) & (idle > 0)[:, None])
    leafs = len(idle)
    n, c = np.arange(leafs), leafs + np.arange(len(leaf))
    rows = ConstraintRows(leafs + len(leaf))
    rows.add([servers], [servers], (np.zeros(leafs), n, 1.0))
    rows.add(np.zeros(leafs), 0.0, (leaf, c, 1.0), (n, n, -gpus_per_server))
    room = fibres.spine[spine]
    rows.add(np.full(len(room), -np.inf), room, (switch, c, 1.0))
    cost = np.concatenate([idle, np.zeros(len(leaf))])
    solved = solve(cost, rows, np.concatenate([idle, np.ones(len(leaf))]), node_limit, RELATIVE_GAP)
    if not isinstance(solved, np.ndarray):
        return solved
    found: dict[int, list[int]] = {}
    for at in np.flatnonzero(solved[c]).tolist():
        found.setdefault(int(leaf[at]), []).append(int(switch[at]))
    return found


def _possible(
    fibres: FreeFibres, leafs: NDArray[np.int64], spines: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(leaf, spine, switch) with a free fibre at both ends."""
    both = fibres.leaf[leafs][:, None, :] & (fibres.spine[spines] > 0)[None, :, :]
    leaf, spine, switch = np.nonzero(both)
    return leafs[leaf], spines[spine], switch


def _port_rows(
    rows: ConstraintRows,
    fibres: FreeFibres,
    leaf: NDArray[np.int64],
    spine: NDArray[np.int64],
    switch: NDArray[np.int64],
    column: NDArray[np.int64],
) -> None:
    """No fibre of a leaf in two circuits, no more circuits at a spine than it has fibres to the switch."""
    switches = fibres.leaf.shape[1]
    for end, capacity in ((leaf, fibres.leaf.ravel()), (spine, fibres.spine.ravel())):
        ports, row = np.unique(end * switches + switch, return_inverse=True)
        rows.add(np.full(len(ports), -np.inf), capacity[ports], (row, column, 1.0))


def solve(
    cost: NDArray[np.float64], rows: ConstraintRows, upper: NDArray[np.float64], node_limit: int, gap: float
) -> NDArray[np.int64] | ProgramUndecided | None:
    """Whole numbers of least cost, None where there are none."""
    if not len(cost):
        return None if (rows.low > 0).any() else np.zeros(0, np.int64)
    answer = highs.solve(cost, upper, rows.constraint(), gap=gap, node_limit=node_limit)
    if answer.x is not None:
        return np.asarray(np.rint(answer.x), np.int64)
    return None if answer.status == highs.INFEASIBLE else ProgramUndecided()
