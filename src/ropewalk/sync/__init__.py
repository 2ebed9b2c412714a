"""How should gradients be synchronised on this fabric? Sync time of every logical topology on every physical one."""

from ropewalk.sync.study import SyncQuestion, SyncRow, SyncStudy, study

__all__ = ["SyncQuestion", "SyncRow", "SyncStudy", "study"]
