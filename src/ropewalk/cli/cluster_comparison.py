"""Options of `ropewalk cluster replay` that say what is compared: policies, and seeds to replay them with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.lists import not_empty, split

if TYPE_CHECKING:
    from ropewalk.tenancy.policies import Policy

ISOLATE = typer.Option("vclos", help="Isolation policies: {policies.isolates}, none; separate several with commas.")
ROUTING = typer.Option(None, help="Routing of flows where jobs share links: {routings}; several with commas.")
PLACEMENT = typer.Option("packed", help="Placement of jobs that share links: {placements}; several with commas.")
COMPARE = typer.Option(True, "--compare/--no-compare", help="Also replay {policies.compared}.")
SEEDS = typer.Option(
    5,
    min=1,
    help="Number of seeds to replay, starting at --seed. They vary hashes, phases, arrivals (--load) and --mix.",
)
REORDER = typer.Option(True, help="For seeds after the first, shuffle blocks of the trace.")
APART = typer.Option(True, help="Also split the delay into network and scheduling, by replays on an ideal network.")


@dataclass(frozen=True)
class SharingOptions:
    """How jobs share the cluster: the policies that are compared."""

    isolate: str
    routing: str | None
    placement: str
    compare: bool

    def policies(self) -> tuple[Policy, ...]:
        from ropewalk.tenancy.policies import policies_named

        return policies_named(
            not_empty(split(self.isolate), "--isolate"),
            None if self.routing is None else split(self.routing),
            compare=self.compare,
            placement=not_empty(split(self.placement), "--placement"),
        )


@dataclass(frozen=True)
class SeedOptions:
    """How often a trace is replayed, and what of it changes from seed to seed."""

    seeds: int
    reorder: bool
    apart: bool
