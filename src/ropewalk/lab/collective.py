"""A collective between all hosts of a lab, or in several groups at once, as work: proved, cut into whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.group import Group, whole_fabric
from ropewalk.collectives.program import Program
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.lab.job import LabWork, job_of_programs, whole_size
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.question import LabQuestion
from ropewalk.routing import Routes, shortest
from ropewalk.task import Lockstep, lockstep
from ropewalk.units import show_size


def collective_work(network: LabNetwork, routes: Routes | None, question: LabQuestion) -> LabWork:
    """The collective that a question names, on the routes of the lab (None: the kernel hashes) or on its own."""
    question.check()
    made = [_made(network, group, question) for group in question.groups or ((),)]
    schedules = [one for one in made if isinstance(one, Schedule)]
    programs = [one.program if isinstance(one, Schedule) else one for one in made]
    size = max(whole_size(program, question.size_bytes) for program in programs)
    rounds = []
    for one, program, members in zip(made, programs, question.groups or ((),), strict=True):
        program.check()
        alone = one.hosts if isinstance(one, Schedule) else np.arange(program.ranks, dtype=np.int32)
        hosts = np.array(members, np.int32) if members else alone
        rounds.append(lockstep(program, float(whole_size(program, question.size_bytes)), hosts=hosts))
    if schedules:
        routes = schedules[0].routes
    # Where the kernel hashes, connections are those of pairs, whatever path they take.
    taken = shortest(network.fabric, *_pairs(rounds)) if routes is None else routes
    job = job_of_programs(
        list(zip(programs, rounds, strict=True)), taken, congestion=network.settings.congestion, shared=routes is None
    )
    groups = [[network.fabric.node_names[host] for host in members] for members in question.groups]
    details = {"collective": question.collective, "act": question.act.key, "size_bytes": size, "groups": groups}
    many = f" in {len(groups)} group{'s' if len(groups) > 1 else ''}" if groups else ""
    what = f"{question.collective} {question.act.words} of {show_size(size)}{many}"
    return LabWork(what, details, job, taken, bool(schedules), 1 / network.scale)


def _made(network: LabNetwork, members: tuple[int, ...], question: LabQuestion) -> Program | Schedule:
    """The collective of one group, or of all hosts; several groups take the routes that the network has."""
    fabric = network.fabric
    if members:
        group = Group((1,) * len(members), fabric=fabric, members=members, own_paths=False)
    else:
        group = replace(whole_fabric(fabric, own_paths=True), segments=question.segments)
    return COLLECTIVES.fitting(question.collective, question.act, group).make[question.act](group)


def _pairs(rounds: Sequence[Lockstep]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    src, dst = zip(*(one.all_pairs() for one in rounds), strict=True)
    return np.concatenate(src), np.concatenate(dst)
