"""Steps on an ideal switch, each collective as one transfer from every member to the next: enough to test reports."""

import numpy as np

from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.sim.step import StepRun
from ropewalk.task import Sketch, TaskKind
from ropewalk.task.step import Act, Step, StepSketch

BANDWIDTH = 1e9


def run_step(step: Step, *, fabric=None, record_rates: bool = False) -> StepRun:
    """The whole amount of a collective goes from each member to the next one on the ring."""
    tasks, owner, done = Sketch(), [], []
    for operation in range(step.operations):
        after = [done[dep] for dep in step.dep[step.dep_start[operation] : step.dep_start[operation + 1]]]
        label, amount = step.name_of(operation), float(step.amount[operation])
        if step.act[operation] == Act.COMPUTE:
            done.append(
                tasks.compute(
                    int(step.rank[operation]), amount, after=after, stream=int(step.stream[operation]), label=label
                )
            )
        elif step.act[operation] == Act.SEND:
            ends = int(step.rank[operation]), int(step.peer[operation])
            done.append(tasks.transfer(*ends, amount, after=after, label=label))
        else:
            members = step.groups[step.group[operation]].tolist()
            arrived = tasks.marker(after=after, label=label)
            round_trip = zip(members, members[1:] + members[:1], strict=True) if len(members) > 1 else ()
            sent = [tasks.transfer(src, dst, amount, after=[arrived], label=label) for src, dst in round_trip]
            done.append(tasks.marker(after=sent or [arrived], label=label))
        owner += [operation] * (len(tasks._rows) - len(owner))
    graph = tasks.graph()
    place = IdealSwitch(max(step.ranks, 2), bandwidth=BANDWIDTH).build() if fabric is None else fabric
    moved = graph.kind == TaskKind.TRANSFER
    routes = shortest(place, graph.place[moved], graph.peer[moved])
    return StepRun(step, simulate(graph, routes, record_rates=record_rates), np.array(owner, np.int32))


def pipeline_step(stages: int = 2, tensor: int = 2, data: int = 1, micro_batches: int = 4) -> Step:
    """GPipe over stages of tensor-parallel ranks with gradients summed over replicas at the end."""
    sketch = StepSketch(stages * tensor * data, ("compute", "tensor", "data", "pipeline"))
    ranks = np.arange(stages * tensor * data).reshape(stages, data, tensor)
    last: dict[tuple[int, int, int], list[int]] = {}
    for replica in range(data):
        for micro_batch in range(micro_batches):
            arrived: list[int] = []
            for stage in range(stages):
                arrived = _work(sketch, ranks, last, (stage, replica, micro_batch), "forward", 1e-3, arrived, stage + 1)
        for micro_batch in range(micro_batches):
            arrived = []
            for stage in reversed(range(stages)):
                arrived = _work(
                    sketch, ranks, last, (stage, replica, micro_batch), "backward", 2e-3, arrived, stage - 1
                )
    for stage in range(stages):
        for shard in range(tensor):
            waits = [task for replica in range(data) for task in last[stage, replica, micro_batches - 1][-1:]]
            total = sketch.collective(
                Act.ALL_REDUCE, ranks[stage, :, shard].tolist(), 2e6, after=waits, stream=2, label="gradients"
            )
            for replica in range(data):
                sketch.compute(int(ranks[stage, replica, shard]), 4e-4, after=[total], label="update")
    return sketch.step(flops=1e12)


def _work(sketch, ranks, last, key, what, seconds, arrived, to) -> list[int]:
    """One pass of one micro-batch through one stage; returns what the neighbour waits for."""
    stage, replica, micro_batch = key
    stages, _, tensor = ranks.shape
    mine = ranks[stage, replica].tolist()
    numbers = range(micro_batch + (what == "backward"))
    before = [done for number in numbers for done in last.get((stage, replica, number), [])[-1:]]
    computed = [
        sketch.compute(rank, seconds, after=[*arrived, *before], label=f"{what} of stage {stage}") for rank in mine
    ]
    met = sketch.collective(Act.ALL_REDUCE, mine, 3e5, after=computed, stream=1, label=f"{what} sum of stage {stage}")
    last.setdefault(key, []).append(met)
    if not 0 <= to < stages:
        return []
    targets = ranks[to, replica].tolist()
    return [
        sketch.send(mine[shard], targets[shard], 2e5, after=[met], stream=3, label="activations")
        for shard in range(tensor)
    ]
