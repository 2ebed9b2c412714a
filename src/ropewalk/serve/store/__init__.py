"""What survives: jobs, settings, events and answers in SQLite or PostgreSQL."""

from ropewalk.serve.store.open import open_store
from ropewalk.serve.store.store import Changes, GivenAnswer, Saved, Store

__all__ = ["Changes", "GivenAnswer", "Saved", "Store", "open_store"]
