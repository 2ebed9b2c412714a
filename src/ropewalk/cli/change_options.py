"""Options that change a cluster before a job is placed: what leaves it, and what goes out of service or returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ropewalk.tenancy.occupancy import Occupancy

RELEASE = typer.Option([], metavar="JOB", help="First release this job. May be repeated.")
DRAIN = typer.Option(
    [], metavar="PART", help="First take leaf:NAME, spine:NAME, server:NAME or link:LEAF-SPINE out of service. May "
    "be repeated.",
)  # fmt: skip
RESTORE = typer.Option([], metavar="PART", help="First return a drained part to service. May be repeated.")


@dataclass(frozen=True)
class ChangeOptions:
    """What happens to the cluster first."""

    release: list[str]
    drain: list[str]
    restore: list[str]

    @property
    def given(self) -> bool:
        """Was any of them asked for?"""
        return bool(self.release or self.drain or self.restore)

    def make(self, now: Occupancy) -> tuple[str, ...]:
        """Change the state; the jobs that run on drained parts still."""
        from ropewalk.tenancy.parts import drained_of

        for name in self.release:
            now.release(name)
        if self.restore:
            now.restore(drained_of(now.plant, self.restore))
        return tuple(now.drain(drained_of(now.plant, self.drain))) if self.drain else ()
