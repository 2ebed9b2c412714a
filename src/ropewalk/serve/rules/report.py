"""What a pass of the reconciler has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ropewalk.serve.rules.driver import Link
from ropewalk.serve.rules.rule import Rule

Allocated = tuple[str, int]
"""Job and generation."""


@dataclass(frozen=True)
class ReconcileReport:
    """What was changed, what failed, and what is known now."""

    added: tuple[Rule, ...] = ()
    removed: tuple[Rule, ...] = ()
    repaired: tuple[Rule, ...] = ()
    """Rules in whose place something else was."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Device -> what went wrong and what to do."""
    resting: tuple[str, ...] = ()
    """Devices that failed before and were not asked again yet."""
    ready: frozenset[Allocated] = frozenset()
    """Allocations with all their rules in place."""
    gone: tuple[Allocated, ...] = ()
    """Allocations that are over and of which nothing is left anywhere."""
    dead: tuple[Link, ...] = ()
    seconds: float = 0.0

    @property
    def quiet(self) -> bool:
        """Was there nothing to do, and nothing that failed?"""
        return not (self.added or self.removed or self.repaired or self.failed or self.resting)

    def as_document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "added": [rule.as_document() for rule in self.added],
            "removed": [rule.as_document() for rule in self.removed],
            "repaired": [rule.as_document() for rule in self.repaired],
            "failed": dict(self.failed),
            "resting": list(self.resting),
            "ready": sorted(list(one) for one in self.ready),
            "gone": [list(one) for one in self.gone],
            "dead_links": [f"link:{leaf}-{spine}" for leaf, spine in self.dead],
            "seconds": round(self.seconds, 6),
        }
