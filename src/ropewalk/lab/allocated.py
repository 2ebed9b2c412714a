"""The jobs of a cluster that `ropewalk cluster allocate --save` wrote, as work: each on its GPUs and its own links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ropewalk.errors import LabError
from ropewalk.lab.job import LabWork, job_of_graph
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.request import scaled
from ropewalk.task import TaskKind
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.snapshot.moment import moment_of_state
from ropewalk.tenancy.snapshot.tasks import Together, written_together
from ropewalk.tenancy.snapshot.tenant import Moment
from ropewalk.tenancy.snapshot.wires import wires_of
from ropewalk.tenancy.work import Iteration, JobExchange
from ropewalk.units import show_size

ISOLATED = "vclos"
"""The policy under which a job keeps to the links that are reserved for it."""


def is_allocation(document: Any) -> bool:
    """Does a document say which jobs hold what of which plant?"""
    return isinstance(document, dict) and document.keys() >= {"plant", "jobs", "drained"}


def allocated_jobs(
    document: dict[str, Any], collective: str, size_bytes: int, *, bandwidth: float, scale: float | None = None
) -> tuple[LabNetwork, LabWork, str]:
    """The lab of the plant, one collective of all its jobs at once, and what the machine carries, in words."""
    state = Occupancy.from_document(plant(document["plant"], 1, bandwidth=bandwidth), document)
    jobs = [name for name, one in state.jobs.items() if len(one.gpus) > 1]
    if not jobs:
        raise LabError("no job of the state has two GPUs: place one with `ropewalk cluster allocate --gpus 8 --save`")
    works = {name: Iteration(0.0, (JobExchange(collective, size_bytes),)) for name in jobs}
    together = written(moment_of_state(POLICIES[ISOLATED], state, works, 0))
    network, capacity = scaled(together.routes.fabric, scale)
    job = job_of_graph(together.graph, together.routes, {}, network.settings.congestion)
    details = {"jobs": jobs, "exchange": collective, "size_bytes": size_bytes}
    many = "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs at once"
    what = f"{collective} of {show_size(size_bytes)} of {many}"
    work = LabWork(what, details, job, together.routes, True, 1 / network.scale)
    return network, work, capacity.said()


def written(moment: Moment) -> Together:
    """The exchanges of all jobs as one graph, with messages of whole bytes."""
    together = written_together(wires_of(moment), moment.tenants, [1] * len(moment.tenants))
    graph = together.graph
    amount = np.where(graph.kind == TaskKind.TRANSFER, np.rint(graph.amount), graph.amount)
    return replace(together, graph=replace(graph, amount=amount))
