"""Numbers of the columns that describe a candidate to the kernels."""

from __future__ import annotations

from enum import IntEnum


class Column(IntEnum):
    """One row of whole numbers per candidate."""

    SPLITTING = 0
    """Row of the layer table."""
    CUT = 1
    """Where its first layers begin in the list of cuts."""
    STAGES = 2
    PIECES_EACH = 3
    MICRO_BATCHES = 4
    RULE = 5
    """How the rows of its timetable are found."""
    WRITTEN = 6
    """Which written timetable, where rows are written down."""
    ZERO = 7
    RECOMPUTE = 8
    """Kind of recomputation."""
    AGAIN = 9
    """Where the numbers of blocks at the head of its pieces that are computed again in full begin in their list."""
    REPLICAS = 10
    EXPERT_COPIES = 11
    """Ranks that hold the same experts."""
    TENSOR = 12
    CONTEXT = 13
    SEQUENCE = 14
    LAYOUT = 15
    """Where the costs of its stages begin."""
    LOADS = 16
    """Which set of link loads."""


COLUMNS = len(Column)


class Setting(IntEnum):
    """What all candidates of a search have in common, as numbers."""

    ELEMENT_BYTES = 0
    GRADIENT_BYTES = 1
    STATE_BYTES = 2
    BUCKET_BYTES = 3
    PREFETCH = 4
    REGATHER = 5
    SCATTER_GATHER = 6
    FREE = 7
    """May the model be cut anywhere, and gradients be reduced in any order? Then floors hold for all of these."""
    COPY_BYTES = 8
    """Of the narrow copies of a weight, where products are narrow, less those of the wide one where it has none."""
    SENT_LESS_BYTES = 9
    """What an updated weight with narrow copies alone has less, where it is gathered."""
    GATHER_AHEAD = 10
    """Are updated weights gathered while the next forward pass has begun?"""
    REDUCE_LATE = 11
    """Are gradients reduced behind the last backward pass, not beside it?"""


SETTINGS = len(Setting)
