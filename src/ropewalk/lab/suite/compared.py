"""One run of a testbed, predicted and measured; and the ratio of two, as published, predicted and measured."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.suite.testbed import Case, Read, TimeRatio

LEFT_OUT = ("instants_s", "links", "flows")
"""What is too much of all runs together: `lab run --json` has it of one."""
SAME = 0.02
"""Times closer than this are a draw."""


class RatioVerdict(Enum):
    """What a measured ratio says about a published one."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNJUDGED = "not judged"
    """What was published is not known for sure."""


@dataclass(frozen=True, eq=False)
class CaseRun:
    """One run of a testbed, predicted and measured."""

    case: Case
    lab: LabAnswer
    amount: float
    read: Read

    @property
    def predicted_s(self) -> float:
        """Of the whole run: at the finest level where a hash decides, at flow level where nothing meets by chance."""
        level = self.lab.levels[-1] if self.case.setup.hashed else self.lab.levels[0]
        return self.read(level.end)

    @cached_property
    def measured_s(self) -> float:
        return float(median(self.read(np.array(run.end)) for run in self.lab.counted))

    @property
    def error(self) -> float:
        """Measured over predicted, less one."""
        return self.measured_s / self.predicted_s - 1

    @property
    def disturbed(self) -> bool:
        """Did the machine disturb all of its runs?"""
        return not self.lab.trusted

    @property
    def excuse(self) -> str:
        """What is known about why a prediction missed, in brackets; empty where nothing is."""
        known = [
            "disturbed by the machine" if self.disturbed else "",
            f"its runs are {100 * self.lab.spread:.1f} % apart" if self.lab.spread > abs(self.error) else "",
            f"{self.lab.dropped} packets dropped" if self.lab.dropped else "",
            *(self.lab.parting.said() if self.lab.parting.link is not None else ()),
        ]
        said = "; ".join(one for one in known if one)
        return f" ({said})" if said else ""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.case.name,
            "hashed": self.case.setup.hashed,
            "unit": self.case.setup.unit,
            "amount": self.amount,
            "predicted_s": self.predicted_s,
            "measured_s": self.measured_s,
            "error": self.error,
            "disturbed": self.disturbed,
            "lab": {name: value for name, value in self.lab.as_json().items() if name not in LEFT_OUT},
        }


@dataclass(frozen=True, eq=False)
class Compared:
    """The ratio of two times, as published, predicted and measured."""

    comparison: TimeRatio
    slow: CaseRun
    fast: CaseRun

    @property
    def predicted(self) -> float:
        return self.slow.predicted_s / self.slow.amount / (self.fast.predicted_s / self.fast.amount)

    @property
    def measured(self) -> float:
        return self.slow.measured_s / self.slow.amount / (self.fast.measured_s / self.fast.amount)

    @property
    def error(self) -> float:
        """How far the measured ratio is from the predicted one."""
        return self.measured / self.predicted - 1

    @property
    def same_order(self) -> bool:
        """Does the same run win in the prediction and in the measurement, or do both call it a draw?"""
        before, after = (_winner(ratio) for ratio in (self.predicted, self.measured))
        return before == after or abs(self.error) <= SAME

    @property
    def disturbed(self) -> bool:
        return self.slow.disturbed or self.fast.disturbed

    @property
    def verdict(self) -> RatioVerdict:
        claim = self.comparison.claim
        if not claim.decides:
            return RatioVerdict.UNJUDGED
        return RatioVerdict.AGREES if claim.agrees(self.measured) else RatioVerdict.DIFFERS

    @property
    def said(self) -> str:
        """The verdict in words.

        A prediction that names another winner than the measurement is said before anything else.
        """
        claim = self.comparison.claim
        words = self.verdict.value if claim.decides else f"not judged: {claim.sure.value}"
        if not self.same_order:
            words = f"another order than predicted; {words}"
        return f"{words}; disturbed" if self.disturbed else words

    def as_json(self) -> dict[str, Any]:
        claim = self.comparison.claim
        return {
            "slow": self.comparison.slow,
            "fast": self.comparison.fast,
            "claim": claim.said,
            "source": claim.source,
            "sure": claim.sure.value,
            "published": claim.ratio,
            "predicted": self.predicted,
            "measured": self.measured,
            "same_order": self.same_order,
            "verdict": self.verdict.value,
            "disturbed": self.disturbed,
        }


def _winner(ratio: float) -> int:
    return 0 if abs(ratio - 1) <= SAME else 1 if ratio > 1 else -1
