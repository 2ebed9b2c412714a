"""How should gradients be synchronised on this fabric? Sync time of every logical topology on every physical one."""

from ropewalk.sync.question import SyncQuestion
from ropewalk.sync.row import SyncRow
from ropewalk.sync.study import SyncStudy, answer

__all__ = ["SyncQuestion", "SyncRow", "SyncStudy", "answer"]
