"""Which collective each purpose of a training step runs: one for all, save where a purpose has its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import Findings, ProgramError

AUTO = "auto"
"""Left to whoever can simulate the step."""

PURPOSES = ("tensor", "context", "expert", "tables", "data", "zero", "pipeline")
"""What ranks meet for, as the streams of a step are called."""


@dataclass(frozen=True)
class CollectiveChoice:
    """
    >>> choice = collective_choice("data=forest,tensor=ring")
    >>> choice.name_for("data"), choice.name_for("expert"), str(choice)
    ('forest', 'ring', 'data=forest,tensor=ring')
    """

    default: str = "ring"
    by_purpose: tuple[tuple[str, str], ...] = ()

    def name_for(self, purpose: str) -> str:
        return dict(self.by_purpose).get(purpose, self.default)

    def having(self, purpose: str, name: str) -> CollectiveChoice:
        """The same with another collective for one purpose."""
        own = {**dict(self.by_purpose), purpose: name}
        return replace(self, by_purpose=tuple(sorted((key, one) for key, one in own.items() if one != self.default)))

    @property
    def is_open(self) -> bool:
        """Whether something is left to a simulation."""
        return AUTO in (self.default, *dict(self.by_purpose).values())

    def __str__(self) -> str:
        own = ",".join(f"{purpose}={name}" for purpose, name in self.by_purpose)
        return ",".join(filter(None, [self.default if self.default != "ring" or not own else "", own]))


def collective_choice(text: str) -> CollectiveChoice:
    """Read `ring`, `auto`, `data=forest,tensor=ring` or `auto,tensor=ring`; all mistakes are said at once."""
    findings = Findings(ProgramError, f"algorithm {text!r}")
    default: str | None = None
    by_purpose: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        purpose, equals, name = part.partition("=")
        name = name if equals else purpose
        if name != AUTO and name not in COLLECTIVES:
            findings.add(COLLECTIVES.unknown(name, also=(AUTO,)))
        elif not equals and default not in (None, name):
            findings.add(f"{default} and {name} both apply to all purposes: give one, or name a purpose, data={name}")
        elif not equals:
            default = name
        elif purpose not in PURPOSES:
            findings.add(f"{purpose!r} is not a purpose of a step: use one of {', '.join(PURPOSES)}")
        elif by_purpose.setdefault(purpose, name) != name:
            findings.add(f"{purpose} has two collectives, {by_purpose[purpose]} and {name}: give one")
    findings.raise_if_any()
    return CollectiveChoice(default or "ring", tuple(sorted(by_purpose.items())))
