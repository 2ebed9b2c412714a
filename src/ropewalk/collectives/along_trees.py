"""Collectives that go along trees, whichever schedule carries them: what reduces, what spreads, what has one root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TreeCollective:
    """What a collective asks of the trees that carry it."""

    title: str
    reduces: bool
    """Whether every rank brings something to the sum; otherwise only the root of a chunk has it."""
    spreads: bool
    """Whether every rank ends with it; otherwise only the root of a chunk does."""
    one_root: bool = False


TREE_COLLECTIVES: Mapping[str, TreeCollective] = {
    "allgather": TreeCollective("all-gather", reduces=False, spreads=True),
    "reducescatter": TreeCollective("reduce-scatter", reduces=True, spreads=False),
    "allreduce": TreeCollective("all-reduce", reduces=True, spreads=True),
    "broadcast": TreeCollective("broadcast", reduces=False, spreads=True, one_root=True),
    "reduce": TreeCollective("reduce", reduces=True, spreads=False, one_root=True),
}
"""By the name that they have on the command line."""
