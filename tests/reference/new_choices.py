"""One choice of every kind that nobody has heard of: what adding a line to a table must be enough for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ropewalk.choices import Choice
from ropewalk.collectives.act import Act
from ropewalk.collectives.for_groups import of_ranks
from ropewalk.collectives.group import Group
from ropewalk.collectives.mesh import mesh_all_reduce
from ropewalk.collectives.table import COLLECTIVES, Collective
from ropewalk.fabric.families import FAMILIES, family
from ropewalk.fabric.sizing import sized_ring
from ropewalk.fabric.torus import Ring
from ropewalk.palette import STEEL
from ropewalk.routing.fit import GRIDS, needs_a_grid
from ropewalk.routing.shortest import shortest
from ropewalk.routing.table import ROUTERS, RouterChoice
from ropewalk.sim.transports import TRANSPORTS, rdma
from ropewalk.tenancy.policies import POLICIES, Policy, through_switches
from ropewalk.tenancy.shared import gpus_only
from ropewalk.timetable.early_backward import early_backward
from ropewalk.timetable.named import TIMETABLES, TimetableChoice


def up_to_eight(act: Act, group: Group) -> str | None:
    return None if group.ranks <= 8 else f"runs on at most 8 ranks, and there are {group.ranks}"


def few_hosts(hosts: int) -> Ring | None:
    return sized_ring(hosts) if hosts <= 8 else None


NEW = {
    "routers": (ROUTERS, RouterChoice("zigzag", lambda seed: shortest, "left, then right", needs_a_grid, GRIDS)),
    "transports": (TRANSPORTS, Choice("pigeons", rdma, "packets on the wing", colour=STEEL)),
    "policies": (POLICIES, Policy("lottery", gpus_only, "who draws the longest straw", through_switches)),
    "fabrics": (
        FAMILIES,
        family("wheel", Ring, "a small ring", usage="HOSTS", example="wheel:8", sizes="2 to 8", sized=few_hosts),
    ),
    "schedules": (TIMETABLES, TimetableChoice("polka", early_backward, "two steps forward, one back")),
    "collectives": (
        COLLECTIVES,
        Collective("gossip", of_ranks(all_reduce=mesh_all_reduce), "everyone tells everyone", up_to_eight, "8 ranks"),
    ),
}
"""By the kind as `ropewalk list` calls it: the table, and a record that is not in it."""


@contextmanager
def one_more_of_each() -> Iterator[None]:
    """Every table with its new record, while the block runs."""
    with ExitStack() as stack:
        for choices, record in NEW.values():
            stack.enter_context(choices.including(record))  # type: ignore[attr-defined]
        yield
