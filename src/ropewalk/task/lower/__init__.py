"""From a model and a strategy to one training step as ranks see it."""

from ropewalk.task.lower.lowering import DETAILS, StepsInARow, lower, lower_steps
from ropewalk.task.lower.moves import STREAMS

__all__ = ["DETAILS", "STREAMS", "StepsInARow", "lower", "lower_steps"]
