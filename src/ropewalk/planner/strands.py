"""What every strand is worth: the best that it does alone, everything else left plain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.planner.pricing import Priced
from ropewalk.planner.space import COLUMNS


@dataclass(frozen=True)
class StrandOfSpace:
    """A strand that the columns of candidates say."""

    name: str
    about: str
    columns: tuple[str, ...]


STRANDS = (
    StrandOfSpace(
        "degrees",
        "parallel degrees and how ranks communicate",
        ("data", "tensor", "pipeline", "expert", "context", "exchange", "folded"),
    ),
    StrandOfSpace("micro-batch", "samples per micro-batch", ("micro_batch",)),
    StrandOfSpace("schedule", "the order of passes", ("schedule", "interleave")),
    StrandOfSpace("sharding", "what is sharded over data ranks (ZeRO)", ("zero",)),
    StrandOfSpace("recomputation", "what is recomputed instead of kept", ("recompute", "again")),
    StrandOfSpace("sequence", "activations split along the sequence", ("sequence",)),
)
FOLLOWS = {"data", "micro_batches"}
"""Columns that follow from others: more ranks of one sort are fewer of another, and so on."""


def alone(priced: Priced, plain: int, strand: StrandOfSpace) -> Ints:
    """Candidates that fit and differ from the plain one in this strand at most."""
    fixed = [name for name in COLUMNS if name not in strand.columns and name not in FOLLOWS]
    if strand.name != "degrees":
        fixed.append("data")
    same = np.all([priced.candidates.column(name) == priced.candidates.column(name)[plain] for name in fixed], axis=0)
    return np.flatnonzero(same & priced.fits)


def best_alone(priced: Priced, which: Ints, simulate: Callable[[int], float]) -> tuple[int, float]:
    """The fastest of some candidates by simulation, best bound first."""
    bounds = priced.replay(which)
    best, seconds = -1, np.inf
    for place in np.argsort(bounds, kind="stable").tolist():
        if bounds[place] >= seconds:
            break
        taken = simulate(int(which[place]))
        if taken < seconds:
            best, seconds = int(which[place]), taken
    return best, seconds
