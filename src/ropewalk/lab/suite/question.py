"""Which testbeds are run, how long and how often."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import Findings, LabError
from ropewalk.lab.question import MOST_REPEATS
from ropewalk.lab.suite.table import TESTBEDS
from ropewalk.lab.suite.testbed import Recipe

SECONDS, SHORT_SECONDS = 1.5, 0.75
"""How long a run takes, about; steps of training twice as long."""
REPEATS, SHORT_REPEATS = 3, 2


@dataclass(frozen=True)
class SuiteQuestion:
    """The testbeds to run."""

    only: tuple[str, ...] = ()
    """All of them unless named."""
    short: bool = False
    repeats: int | None = None
    """Runs that count, after one that warms connections up; 3 unless given, 2 in the short form."""
    seed: int = 0
    """Of planners and of routers that hash; the hash of the kernel has a key of its own."""

    def check(self) -> None:
        findings = Findings(LabError, "lab suite")
        for name in self.only:
            if name not in TESTBEDS:
                findings.add(TESTBEDS.unknown(name))
        if not 1 <= self.counted <= MOST_REPEATS:
            findings.add(f"{self.counted} repeats are out of range: give 1 to {MOST_REPEATS}")
        findings.raise_if_any()

    @property
    def counted(self) -> int:
        """Runs that count."""
        return self.repeats if self.repeats is not None else SHORT_REPEATS if self.short else REPEATS

    @property
    def seconds(self) -> float:
        return SHORT_SECONDS if self.short else SECONDS

    def recipes(self) -> dict[str, Recipe]:
        """By the name of their testbed, in the order of the table.

        >>> list(SuiteQuestion(only=("vclos", "hips")).recipes())
        ['hips', 'vclos']
        """
        made = {name: one.make() for name, one in TESTBEDS.items() if not self.only or name in self.only}
        return {name: recipe.shortened() for name, recipe in made.items()} if self.short else made
