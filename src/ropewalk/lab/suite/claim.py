"""What a paper says about two of its runs, where it says so, and how sure we are that it does.

>>> halved = Claim("a ring takes twice as long", "closed form", Sure.DERIVED, 2.0, least=1.9)
>>> halved.agrees(2.05), halved.agrees(1.5), halved.decides
(True, False, True)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CLOSE = 0.10
"""How far a ratio may be from the published one, where a claim gives no range."""


class Sure(Enum):
    """How a published fact is known. Only what was read or follows from a proof decides anything."""

    DERIVED = "derived and checked"
    READ = "read in the paper or its code"
    ABSTRACT = "from an abstract only"
    SECOND_HAND = "second hand"
    RECALLED = "recalled, not verified"

    @property
    def decides(self) -> bool:
        return self in (Sure.DERIVED, Sure.READ)


@dataclass(frozen=True)
class Claim:
    """What was published about the ratio of two times."""

    said: str
    source: str
    sure: Sure
    ratio: float | None = None
    """The published one; None where only an order or a range is known."""
    least: float | None = None
    """Ratios from here on agree; 10 % below the published one unless given, any without one."""
    most: float | None = None

    @property
    def decides(self) -> bool:
        return self.sure.decides

    @property
    def span(self) -> tuple[float, float]:
        """The ratios that agree with it."""
        low = 0.0 if self.ratio is None else self.ratio * (1 - CLOSE)
        high = float("inf") if self.ratio is None else self.ratio * (1 + CLOSE)
        return low if self.least is None else self.least, high if self.most is None else self.most

    def agrees(self, ratio: float) -> bool:
        low, high = self.span
        return low <= ratio <= high

    @property
    def ratio_said(self) -> str:
        """The published ratio as a table shows it: with what agrees where no number was published.

        >>> Claim("", "", Sure.DERIVED, least=1.1).ratio_said, Claim("", "", Sure.RECALLED, 2.0).ratio_said
        ('above 1.1', '2.00')
        """
        if self.ratio is not None:
            return f"{self.ratio:.2f}"
        low, high = self.span
        return f"above {low:g}" if high == float("inf") else f"{low:g} to {high:g}"
