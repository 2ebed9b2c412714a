"""Ways to order gradients, run on a fabric by the flow simulator, step after step, beside what the model says.

The model of a way sees one resource; the network has links, rings and routes. On a quiet network both agree; where they
do not, the network has something that the model does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ropewalk.errors import StrategyError
from ropewalk.fabric import Fabric
from ropewalk.overlap.answer import OverlapAnswer
from ropewalk.overlap.buckets import buckets
from ropewalk.overlap.groups import Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import Launches, in_ready_order
from ropewalk.overlap.link import Kind
from ropewalk.overlap.merging import merged_gradients
from ropewalk.overlap.on_network import as_launched, as_scheduled, gradients_of
from ropewalk.overlap.plans import StreamedPlan, fused_plan, streamed_plan
from ropewalk.overlap.scheduler import schedule
from ropewalk.overlap.tensors import Tensors, from_layers
from ropewalk.overlap.ways import Scene
from ropewalk.task.passes import Gradients, cross_barrier, with_barrier
from ropewalk.task.transport import Transport
from ropewalk.training.network import NetworkUse
from ropewalk.training.steady import run_gradients

STEPS = 4
"""Steps in a row; the difference of the last two is one."""

Advance = Callable[[int, int, str], None]


@dataclass(frozen=True)
class NetworkRow:
    """One way on the network."""

    way: str
    model_s: float
    network_s: float

    @property
    def deviation(self) -> float:
        """How much longer the network takes than the model says, in parts of it."""
        return self.network_s / self.model_s - 1


def on_fabric(
    answer: OverlapAnswer,
    fabric: Fabric,
    *,
    routing: str = "default",
    advance: Advance = lambda done, total, now: None,
) -> list[NetworkRow]:
    """Every way that is a plan of launches, on a fabric with a host for each GPU."""
    question, scene = answer.question, answer.scene
    if question.sync is not Kind.ALL_REDUCE:
        raise StrategyError("parameter servers are no collectives of a step: run all-reduces on the network")
    if fabric.hosts < question.workers:
        raise StrategyError(f"{fabric.name} has {fabric.hosts} hosts for {question.workers} GPUs: give a larger fabric")
    costs = Transport(start_up_s=question.launch_s, round_inside_s=question.latency_s,
                      round_across_s=question.latency_s)  # fmt: skip
    use = NetworkUse(routing=routing, transport=costs, seed=question.seed)
    chosen = [way for way in answer.ways if way.name in PLANS]
    rows = []
    for number, way in enumerate(chosen):
        advance(number, len(chosen), f"{way.name} on the network")
        gradients, across = PLANS[way.name](scene, question.workers)
        repeated = (cross_barrier if across else with_barrier)(gradients, STEPS)
        rows.append(NetworkRow(way.name, way.step_s, float(run_gradients(repeated, fabric, use).periods_s[-1])))
    return rows


def _in_order(scene: Scene, workers: int, groups: Groups) -> tuple[Gradients, bool]:
    launches = in_ready_order(one_stream_sums(scene.tensors), groups)
    return as_launched(gradients_of(scene.tensors, workers), launches), False


def _first_come(scene: Scene, workers: int) -> tuple[Gradients, bool]:
    return _in_order(scene, workers, Groups.singles(scene.tensors.in_ready_order))


def _bucketed(scene: Scene, workers: int) -> tuple[Gradients, bool]:
    return _in_order(scene, workers, buckets(scene.tensors))


def _merged(scene: Scene, workers: int) -> tuple[Gradients, bool]:
    return _in_order(scene, workers, merged_gradients(scene.tensors, scene.link))


def _by_priority(scene: Scene, workers: int) -> tuple[Gradients, bool]:
    run = schedule(scene.tensors, scene.link, scene.policy)
    return as_scheduled(gradients_of(scene.tensors, workers), run), True


def _fused(scene: Scene, workers: int) -> tuple[Gradients, bool]:
    run = fused_plan(scene.tensors, scene.link, widest=scene.widest)
    return as_launched(gradients_of(scene.tensors, workers), run.launches), True


def _streamed(scene: Scene, workers: int) -> tuple[Gradients, bool]:
    plan = streamed_plan(scene.tensors, scene.link, rounds_s=scene.rounds_s, widest=scene.widest)
    tensors, launches = of_blocks(scene.tensors, plan)
    return as_launched(gradients_of(tensors, workers), launches), True


def of_blocks(tensors: Tensors, plan: StreamedPlan) -> tuple[Tensors, Launches]:
    """A model whose tensors are the blocks of a plan, and the launches of the plan by their new numbers.

    What arrives together is there when its last gradient is and is wanted by its first layer: one tensor of that layer.
    """
    first = np.array([min(int(tensors.layer[member]) for member in block) for block in plan.blocks.members])
    order = np.argsort(first, kind="stable")
    number = np.argsort(order, kind="stable")
    sizes = np.array([tensors.size_bytes[list(block)].sum() for block in plan.blocks.members])
    blocks = from_layers(
        sizes[order],
        backward_s=tensors.backward_s,
        forward_s=tensors.forward_s,
        layer=first[order],
        names=tuple(f"block {block}" for block in order.tolist()),
        layer_names=tensors.layer_names,
        inputs=tensors.inputs,
        model=tensors.model,
        source=tensors.source,
    )
    launches = plan.run.launches
    members = tuple(tuple(int(number[block]) for block in group) for group in launches.groups.members)
    return blocks, replace(launches, groups=Groups(members), tensor=number[launches.tensor])


PLANS: Mapping[str, Callable[[Scene, int], tuple[Gradients, bool]]] = {
    "fifo": _first_come, "buckets": _bucketed, "merged": _merged, "priority": _by_priority, "fused": _fused,
    "streamed": _streamed,
}  # fmt: skip
"""By way: its gradients as a step launches them, and whether they reach across the barrier.

Halves of sums (DeAR) are left out: a lowered step sums in all-reduces.
"""
