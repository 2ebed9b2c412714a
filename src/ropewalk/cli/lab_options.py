"""Options of labs: what is built, how it is routed and scaled, what it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import refuse
from ropewalk.cli.places import fabric_named, plan_named
from ropewalk.documents.numbers import finite
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.fabric import Fabric
    from ropewalk.lab.request import LabRequest
    from ropewalk.routing import Routes

NAME = typer.Option("lab", "--name", "-n", help="Name of the lab, if several are up.")
HOSTS = typer.Option(None, min=1, help="Number of hosts, if only a family is named.")
ROUTING = typer.Option(
    None, help="Routes: {routers}, or hash (the kernel's own ECMP).  [default: the best for the fabric]"
)
SEED = typer.Option(0, help="Seed of hashed routing.")
SCALE = typer.Option(None, help="Scale link bandwidth down, such as 1:5000.  [default: what this machine can carry]")
QUEUE = typer.Option(
    None,
    help="Queueing: fair (round robin, as in max-min fairness) or fifo.  [default: fair]",
)


@dataclass(frozen=True)
class RouteOptions:
    """Which lab, on which routes."""

    hosts: int | None
    routing: str | None
    seed: int
    name: str

    def fabric(self, named: str | None, place: ClusterOptions) -> Fabric:
        """The fabric that is named, or that of the plan."""
        return fabric_named(named, place, plan=plan_named(named), hosts=self.hosts)

    def routes(self, named: str | None, fabric: Fabric) -> tuple[str, Routes | None]:
        """The routes of the plan that is named, or of the router, with their name."""
        from ropewalk.lab.request import routes_by_name, routes_of_plan
        from ropewalk.routing import DEFAULT

        plan = plan_named(named)
        if plan is None:
            return routes_by_name(fabric, self.routing or DEFAULT, self.seed)
        refuse(["--routing"] if self.routing else [], f"{named} is a plan and already fixes it: leave it out")
        return routes_of_plan(plan, fabric)


@dataclass(frozen=True)
class BuildOptions(RouteOptions):
    """How a lab is built, and what it is called."""

    scale: str | None
    queue: str | None

    def typed(self) -> dict[str, object]:
        """What only a new lab can be told, as it is typed."""
        return {"--hosts": self.hosts, "--routing": self.routing, "--scale": self.scale, "--queue": self.queue}

    def request(self, named: str | None, place: ClusterOptions) -> LabRequest:
        """What is to be built; says what the machine carries."""
        from ropewalk.lab.network import FAIR, LabSettings
        from ropewalk.lab.request import LabRequest, scaled

        fabric = self.fabric(named, place)
        # A fabric that is too large is refused before all its pairs are routed.
        network, capacity = scaled(
            fabric, None if self.scale is None else scale_named(self.scale), LabSettings(queue=self.queue or FAIR)
        )
        router, routes = self.routes(named, fabric)
        typer.echo(f"{fabric.name}: {capacity.said()}", err=True)
        return LabRequest(self.name, named or str(place.cluster), network, router, routes)


def scale_named(text: str) -> float:
    """1:5000 and 5000 are the same.

    >>> scale_named("1:5000"), scale_named("2.5")
    (5000.0, 2.5)
    """
    try:
        return finite(text.removeprefix("1:"))
    except ValueError:
        raise InputError(f"--scale {text} is not a number: write it like 1:5000") from None
