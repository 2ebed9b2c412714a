"""How much a forest takes to write down, before it is: trees that reach every member from every root, a branch each."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized

from ropewalk.room import foresee

BRANCH_BYTES = 1200.0
"""Of memory for each branch of each tree, in layers, with what is made of it; `tests/unit/test_room.py` holds it."""
BRANCH_S = 25e-6
"""To grow a branch and to give it its ways, measured on random graphs of 256 to 1,024 hosts."""
SAMPLE = 4
"""Roots whose trees are grown to know how many the others have."""


def foresee_trees(members: int, roots: Sequence[int], trees_of: Callable[[int], Sized]) -> None:
    """Say or refuse what the trees of these roots take, `trees_of` each of them."""
    sample = roots[:: max(1, len(roots) // SAMPLE)]
    trees = sum(len(trees_of(root)) for root in sample) / len(sample) * len(roots)
    branches = trees * (members - 1)
    foresee(
        f"{trees:,.0f} trees over {members:,} ranks",
        branches * BRANCH_BYTES,
        "use fewer ranks, or another method such as best-ring",
        seconds=branches * BRANCH_S,
    )
