"""The training step of a plan, as work: computing becomes timed waits, every transfer really travels.

What a step computes and sends keeps its proportions: at 1/scale of the speeds of links, everything takes `scale` times
as long. `shrink` divides bytes and seconds alike, for runs that would take too long.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np

from ropewalk.errors import LabError
from ropewalk.fabric.fingerprint import fingerprint
from ropewalk.lab.capacity import exact_scale
from ropewalk.lab.job import LabWork, job_of_graph
from ropewalk.lab.network import LabNetwork
from ropewalk.plans import Plan
from ropewalk.sim.step import Window
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskGraph, TaskKind
from ropewalk.training import answer
from ropewalk.training.planned import question_of

MOST_TASKS = 200_000


LONGEST_S = 20.0
"""A run of a step on a lab, unless somebody asks for longer ones."""


def step_work(network: LabNetwork, plan: Plan, shrink: float | None = None) -> LabWork:
    """The step of a plan between the hosts of a lab, on the routes that the plan has decided."""
    found = answer(question_of(plan))
    return work_of_step(network, plan.model.name, found.run.trace, shrink, found.window)


def work_of_step(
    network: LabNetwork, model: str, trace: Trace, shrink: float | None = None, window: Window | None = None
) -> LabWork:
    """A step that was simulated, between the hosts of a lab and on the same routes.

    Without a `shrink`, that of 1, 2, 5, 10, … which makes a run short enough to be repeated. With a `window` it is
    several steps in a row, where communication goes on across their borders.
    """
    fabric, graph = trace.routes.fabric, trace.graph
    if fingerprint(fabric) != fingerprint(network.fabric):
        raise LabError(
            f"the plan is for {fabric.name}, and the lab is {network.fabric.name}: build the lab of the plan"
        )
    if graph.tasks > MOST_TASKS:
        raise LabError(f"the step has {graph.tasks} tasks, and a lab runs at most {MOST_TASKS}: plan for fewer GPUs")
    if shrink is None:
        shrink = exact_scale(trace.makespan * network.scale, LONGEST_S)
    job = job_of_graph(in_lab(trace, network.scale, shrink), trace.routes, lanes_of(trace), network.settings.congestion)
    steps, step_s = (1, trace.makespan) if window is None else (window.steps, window.end_s - window.begin_s)
    details = {"model": model, "shrink": shrink, "steps": steps, "step_s": step_s, "steps_s": trace.makespan}
    part = "" if shrink == 1 else f", divided by {shrink:g},"
    what = "step" if steps == 1 else f"{steps} steps in a row"
    return LabWork(f"{what} of {model}{part}", details, job, trace.routes, True, shrink / network.scale)


def in_lab(trace: Trace, scale: float, shrink: float) -> TaskGraph:
    """The tasks of a run at the speeds of a lab; latencies of paths, which a lab has not, become part of start-ups."""
    graph, slower = trace.graph, scale / shrink
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    start_up = graph.start_up * slower
    start_up[transfer] += trace.routes.latency()[trace.routes.rows_of(graph, transfer)] * slower
    amount = np.where(graph.kind == TaskKind.COMPUTE, graph.amount * slower, np.rint(graph.amount / shrink))
    return replace(graph, amount=amount, start_up=start_up)


def lanes_of(trace: Trace) -> dict[int, int]:
    """Transfers of one pair of hosts that run at the same time need connections of their own: as many as overlap.

    TCP shares a link between connections as the simulator does between flows; on one connection they would queue.
    """
    graph = trace.graph
    transfers = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    rows = trace.routes.rows_of(graph, transfers)
    order = np.lexsort((transfers, trace.start[transfers], rows))
    lane: dict[int, int] = {}
    row_now, under_way, free = -1, list[tuple[float, int]](), list[int]()
    for at in order.tolist():
        task = int(transfers[at])
        if rows[at] != row_now:
            row_now, under_way, free = int(rows[at]), [], []
        while under_way and under_way[0][0] <= trace.start[task]:
            heapq.heappush(free, heapq.heappop(under_way)[1])
        lane[task] = heapq.heappop(free) if free else len(under_way)
        heapq.heappush(under_way, (float(trace.end[task]), lane[task]))
    return lane
