"""A shape that was tried in vain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attempt:
    """l leafs and s spines in each of p pods."""

    leafs: int
    spines: int
    proved: bool
    """False where the search and the integer program both reached their limits."""
    pods: int = 1

    def __str__(self) -> str:
        return "×".join(str(count) for count in (self.pods, self.leafs, self.spines)[self.pods == 1 :])
