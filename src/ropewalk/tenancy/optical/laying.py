"""Laying circuits: give every wanted leaf-spine circuit a switch in which both ends have a free fibre.

This is edge colouring: circuits are edges, switches are colours; a leaf may use a colour once, a spine as often as it
has fibres there, and colours that other jobs hold are gone. Where nothing is gone, alternating chains always succeed
(König). Where some colours are, they may fail though a solution exists: then the integer program decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ropewalk.arrays import Flags, Ints
from ropewalk.tenancy.optical.fibres import FreeFibres

Switches = dict[tuple[int, int], list[int]]
"""(leaf, spine): the switches of the circuits between the two, ascending."""
NOTHING = -1


@dataclass(frozen=True, eq=False)
class Laying:
    """Circuits laid so far for one job, over fibres that were free when it began: arrays that the kernel changes."""

    free: Flags
    room: Ints
    spine_at: Ints
    """[leaf, switch]: the spine of the circuit laid there, or -1."""
    leafs_at: Ints
    laid_at: Ints

    @classmethod
    def over(cls, fibres: FreeFibres) -> Laying:
        """Over free fibres; nothing is laid yet."""
        spine_at = np.full(fibres.leaf.shape, NOTHING, np.int64)
        most = int(fibres.spine.max(initial=0))
        leafs_at = np.empty((*fibres.spine.shape, most), np.int64)
        return cls(fibres.leaf.copy(), fibres.spine.copy(), spine_at, leafs_at, np.zeros_like(fibres.spine))

    def lay(self, circuits: Ints, first: int = 0) -> int:
        """Lay [number, (leaf, spine)] from the first on; answers the number of the one that could not be laid.

        Where all are laid, that is how many they are. Circuits of this job may move to other switches to make way.
        """
        from ropewalk.tenancy.optical._laying_kernel import lay_in_turn

        done: int = lay_in_turn(circuits, first, self.free, self.room, self.spine_at, self.leafs_at, self.laid_at)
        return done

    def circuits(self) -> tuple[Ints, Ints, Ints]:
        """(leaf, switch, spine) of all, leaf by leaf and switch by switch."""
        leaf, switch = np.nonzero(self.spine_at != NOTHING)
        return leaf, switch, self.spine_at[leaf, switch]


def lay_all(fibres: FreeFibres, leafs: Ints, spines: Ints) -> Switches | int:
    """Lay leafs[i] * spines[j] circuits between every leaf i and spine j; answers the spine that could not be joined.

    `leafs` are the virtual leafs on every leaf, `spines` the virtual spines on every spine.
    """
    rows, columns = np.flatnonzero(leafs), np.flatnonzero(spines)
    # Leafs with the least choice come first; each asks for the circuits of one virtual spine in turn.
    slack = fibres.of_leaf[rows] - leafs[rows] * int(spines.sum())
    order = rows[np.argsort(slack, kind="stable")]
    ends = np.stack([np.tile(order, len(columns)), np.repeat(columns, len(order))], axis=1)
    asked = np.repeat(ends, leafs[ends[:, 0]] * spines[ends[:, 1]], axis=0)
    laying = Laying.over(fibres)
    done = laying.lay(asked)
    if done < len(asked):
        return int(asked[done, 1])
    return _by_ends(*laying.circuits())


def _by_ends(leaf: Ints, switch: Ints, spine: Ints) -> Switches:
    """Circuits by the leaf and spine that they join."""
    order = np.lexsort((switch, spine, leaf))
    leaf, spine, of_pair = leaf[order], spine[order], switch[order].tolist()
    first = np.flatnonzero(np.r_[True, (np.diff(leaf) != 0) | (np.diff(spine) != 0)][: len(leaf)])
    ends = zip(leaf[first].tolist(), spine[first].tolist(), strict=True)
    bounds = [*first.tolist(), len(of_pair)]
    return {pair: of_pair[at:end] for pair, (at, end) in zip(ends, pairwise(bounds), strict=True)}
