"""What is to be run on a lab: a collective over all its hosts or in groups, of which size, how often."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.collectives.act import EXCHANGES, Act
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import Findings, LabError

MOST_BYTES = 1 << 30
MOST_REPEATS = 1000


@dataclass(frozen=True)
class LabQuestion:
    """A collective between hosts."""

    collective: str = "ring"
    act: Act = Act.ALL_REDUCE
    size_bytes: int = 4_000_000
    """In the buffer of a rank."""
    repeats: int = 5
    segments: int = 1
    """Pieces in which a buffer follows itself down the trees of a collective that is made for the network."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Hosts of each group, which all run the collective at the same time; all hosts together unless given."""

    def check(self) -> None:
        findings = Findings(LabError, "lab run")
        if self.collective not in COLLECTIVES:
            findings.add(COLLECTIVES.unknown(self.collective))
        if self.act not in EXCHANGES:
            findings.add(f"{self.act.words} moves no bytes: choose one of {', '.join(act.key for act in EXCHANGES)}")
        if not 1 <= self.size_bytes <= MOST_BYTES:
            findings.add(f"a size of {self.size_bytes} bytes cannot be run: give 1B to 1GiB")
        if not 1 <= self.repeats <= MOST_REPEATS:
            findings.add(f"{self.repeats} repeats are out of range: give 1 to {MOST_REPEATS}")
        if not 1 <= self.segments <= MOST_REPEATS:
            findings.add(f"{self.segments} segments are out of range: give 1 to {MOST_REPEATS}")
        seated = [host for group in self.groups for host in group]
        if len(seated) > len(set(seated)):
            findings.add("a host is in two groups, or twice in one: give every host to one group")
        if any(len(group) < 2 for group in self.groups):
            findings.add("a group has one host: give two or more to each")
        findings.raise_if_any()
