"""A collective between all hosts of a lab, as work: made for its fabric, proved, cut into whole numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ropewalk.collectives.group import whole_fabric
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.lab.job import LabWork, job_of_program, whole_size
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.question import LabQuestion
from ropewalk.routing import Routes, shortest
from ropewalk.task import lockstep
from ropewalk.units import show_size


def collective_work(network: LabNetwork, routes: Routes | None, question: LabQuestion) -> LabWork:
    """The collective that a question names, on the routes of the lab (None: the kernel hashes) or on its own."""
    question.check()
    group = replace(whole_fabric(network.fabric, own_paths=True), segments=question.segments)
    made = COLLECTIVES.fitting(question.collective, question.act, group).make[question.act](group)
    brings = isinstance(made, Schedule)
    program = made.program if isinstance(made, Schedule) else made
    program.check()
    hosts = made.hosts if isinstance(made, Schedule) else np.arange(program.ranks, dtype=np.int32)
    size = whole_size(program, question.size_bytes)
    rounds = lockstep(program, float(size), hosts=hosts)
    if isinstance(made, Schedule):
        routes = made.routes
    shared = routes is None
    # Where the kernel hashes, connections are those of pairs, whatever path they take.
    taken = shortest(network.fabric, *rounds.all_pairs()) if routes is None else routes
    job = job_of_program(program, rounds, taken, congestion=network.settings.congestion, shared=shared)
    details = {"collective": question.collective, "act": question.act.key, "size_bytes": size}
    what = f"{question.collective} {question.act.words} of {show_size(size)}"
    return LabWork(what, details, job, taken, brings, 1 / network.scale)
