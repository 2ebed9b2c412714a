"""From a model and a strategy to one training step as ranks see it."""

from ropewalk.task.lower.lowering import DETAILS, lower
from ropewalk.task.lower.moves import STREAMS

__all__ = ["DETAILS", "STREAMS", "lower"]
