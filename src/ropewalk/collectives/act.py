"""What ranks do: compute and send on their own, meet in collectives."""

from __future__ import annotations

from enum import IntEnum


class Act(IntEnum):
    """
    >>> Act.ALL_REDUCE.words, Act.ALL_REDUCE.key, Act.of_key("allreduce") is Act.ALL_REDUCE
    ('all-reduce', 'allreduce', True)
    """

    COMPUTE = 0
    SEND = 1
    ALL_REDUCE = 2
    ALL_GATHER = 3
    REDUCE_SCATTER = 4
    ALL_TO_ALL = 5
    BROADCAST = 6
    REDUCE = 7
    BARRIER = 8

    @property
    def is_collective(self) -> bool:
        return self >= Act.ALL_REDUCE

    @property
    def words(self) -> str:
        """As people write it."""
        return self.name.lower().replace("_", "-")

    @property
    def key(self) -> str:
        """As `ropewalk collective` takes it."""
        return self.name.lower().replace("_", "")

    @classmethod
    def of_key(cls, key: str) -> Act:
        return next(act for act in EXCHANGES if act.key == key)


EXCHANGES = (Act.ALL_REDUCE, Act.ALL_GATHER, Act.REDUCE_SCATTER, Act.ALL_TO_ALL, Act.BROADCAST, Act.REDUCE)
"""The collectives that move bytes."""
ROOTED = (Act.BROADCAST, Act.REDUCE)
