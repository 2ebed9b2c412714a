"""The best collective for a fabric: how fast it can be, what limits it, what reaches it, and what others would do."""

from ropewalk.synthesis.answer import Alternative, AtSize, CollectiveAnswer
from ropewalk.synthesis.question import KINDS, METHODS, CollectiveQuestion
from ropewalk.synthesis.study import answer

__all__ = [
    "KINDS",
    "METHODS",
    "Alternative",
    "AtSize",
    "CollectiveAnswer",
    "CollectiveQuestion",
    "answer",
]
