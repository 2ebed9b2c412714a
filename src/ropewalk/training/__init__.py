"""The training study: how long one step of a model takes on a cluster, why, and whether it fits."""

from ropewalk.training.answer import TrainingAnswer
from ropewalk.training.network import NCCL_RINGS, NetworkUse, transport_of
from ropewalk.training.question import TrainingQuestion
from ropewalk.training.study import answer

__all__ = ["NCCL_RINGS", "NetworkUse", "TrainingAnswer", "TrainingQuestion", "answer", "transport_of"]
