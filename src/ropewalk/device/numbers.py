"""Bytes of what a rank keeps of a model: weights, what products read again, narrow copies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Numbers:
    """How wide numbers are that are kept."""

    element_bytes: float
    """Of weights, activations and what is sent."""
    narrow_bytes: float | None = None
    """Of an element that only narrowed products read again; None where products are as wide as the rest."""
    copy_bytes: float = 0.0
    """Of the narrow copies of a weight that a narrowed product reads."""
    sent_bytes: float | None = None
    """Of such a weight where it has no other copy and is sent as it is; None where it is sent as wide as the rest."""
    expert_rows: int = 1
    """Rows of each expert are padded to a multiple of this."""
