"""The work of a job from its model: what a lowered training step computes and exchanges, added up by purpose.

The step is the one that `ropewalk simulate` runs. Collectives of the same kind over like groups become one exchange;
the busiest rank says how long computing takes, in a pipeline the clock of its timetable. Gradients are reduced beside
the backward pass where the strategy says so; all-to-alls and tensor-parallel sums stop the computation and hide behind
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.device.pricer import pricer
from ropewalk.errors import ClusterError
from ropewalk.strategy import Placement, Strategy, derive
from ropewalk.task.lower import STREAMS
from ropewalk.task.lower.known import Known
from ropewalk.task.lower.lowering import Lowered
from ropewalk.task.step import Act, Step
from ropewalk.tenancy.work import Exchange, Work
from ropewalk.timetable.clock import run
from ropewalk.workload.source import open_workload

ALL_REDUCE = "hierarchical-ring"
"""How gradients are summed unless told otherwise: rings inside servers, and between servers one for every place."""


@dataclass(frozen=True)
class Model:
    """What is trained, how it is split, and on which device; what is None is derived from the number of GPUs."""

    name: str
    """What `open_workload` reads: a name of the zoo, `file.py:Class`, a file."""
    batch_per_gpu: int = 1
    """Samples of a step on one data rank."""
    strategy: Strategy | None = None
    device: str = "h200"
    precision: str = "bf16"
    all_reduce: str = ALL_REDUCE


def work_of_model(model: Model, gpus: int) -> Work:
    """One step of a model on so many GPUs.

    >>> work = work_of_model(Model("resnet50", 32), gpus=16)
    >>> [(one.collective, round(one.size_bytes / 1e6)) for one in work.exchanges]
    [('hierarchical-ring', 51)]
    """
    strategy = model.strategy or derive(gpus, {}, batch=model.batch_per_gpu * gpus)
    if strategy.ranks != gpus:
        raise ClusterError(
            f"the strategy of {model.name} ({strategy.said()}) is for {strategy.ranks} GPUs, the job has {gpus}: give "
            "one that fits"
        )
    if strategy.parts or strategy.copies > 1:
        raise ClusterError(
            f"the strategy of {model.name} ({strategy.said()}) has groups of unevenly spaced GPUs, and jobs have none: "
            "give degrees instead of parts, and a schedule with one copy of the model such as dualpipev"
        )
    workload = open_workload(model.name, strategy.micro_batch)
    placement = Placement(strategy)
    prices = pricer(model.device, model.precision).sustained(workload)
    made = Lowered(workload, strategy, placement, Known(prices), "auto")
    step = made.step(made.one_step())
    busiest, compute_s = _computing(made, step, placement)
    return _work_of_step(step, strategy, model.all_reduce, busiest, compute_s)


def _computing(made: Lowered, step: Step, placement: Placement) -> tuple[int, float]:
    """The rank that computes longest, and the seconds of a step in which nothing but computing takes time."""
    computes = step.act == Act.COMPUTE
    by_rank, updates = (
        np.bincount(step.rank[mine], step.amount[mine], minlength=step.ranks)
        for mine in (computes, computes & (step.label == step.labels.index("update")))
    )
    busiest = int(np.argmax(by_rank))
    if made.strategy.pipeline == 1:
        return busiest, float(by_rank[busiest])
    seen = run(made.strategy.timetable, made.computing())
    row_ends = seen.end[seen.timetable.row_start[1:] - 1]
    return busiest, float((row_ends[placement.stage_of()] + updates).max())


def _work_of_step(step: Step, strategy: Strategy, all_reduce: str, busiest: int, compute_s: float) -> Work:
    """A step as a job repeats it."""
    room = _Room(compute_s, _last_backward_s(step, busiest, strategy) if strategy.order.overlap else 0.0)
    names = {
        Act.ALL_REDUCE: all_reduce,
        Act.ALL_GATHER: "all-gather",
        Act.REDUCE_SCATTER: "reduce-scatter",
        Act.ALL_TO_ALL: "all-to-all",
    }
    exchanges = []
    for (act, stream, size, stride), amount in _by_purpose(step, strategy).items():
        if act not in names:
            raise ClusterError(f"a step with a {act.name.lower()} is not made a job of: choose another strategy")
        if size == 2 and stride * 2 > step.ranks:
            # Two stages that hold the same embedding: the first and the last of every pipeline.
            exchanges.append(_ends(step, strategy, amount))
            continue
        exchanges.append(Exchange(names[act], amount, room.beside(stream, act), size, stride))
    sent = _sent_forward(step)
    if sent:
        exchanges.append(
            Exchange(
                "pipeline", sent, room.beside("pipeline", Act.SEND), strategy.pipeline, step.ranks // strategy.pipeline
            )
        )
    return Work(compute_s, tuple(exchanges))


@dataclass
class _Room:
    """Computing that exchanges may still hide behind."""

    left_s: float
    backward_s: float

    def beside(self, stream: str, act: Act) -> float:
        """What one exchange of this purpose hides behind; no other one hides there too."""
        reduces = stream in ("data", "zero") and act is not Act.ALL_GATHER
        if reduces:
            taken = min(self.backward_s, self.left_s)
            self.backward_s -= taken
        elif stream in ("zero", "pipeline"):
            # Weights are gathered ahead of the layers that need them, activations sent beside other micro-batches.
            taken = max(self.left_s - self.backward_s, 0.0)
        else:
            taken = 0.0
        self.left_s -= taken
        return taken


Purpose = tuple[Act, str, int, int]


def _by_purpose(step: Step, strategy: Strategy) -> dict[Purpose, float]:
    """Bytes of collectives by (act, stream, size of the group, stride): those of the group that moves most."""
    group_count = len(step.groups)
    collective = np.flatnonzero((step.act >= Act.ALL_REDUCE) & (step.act != Act.BARRIER))
    key = (step.act[collective].astype(np.int64) * len(STREAMS) + step.stream[collective]) * group_count
    kinds, which = np.unique(key + step.group[collective], return_inverse=True)
    amounts = np.bincount(which, step.amount[collective], minlength=len(kinds))
    found: dict[Purpose, float] = {}
    for kind, amount in zip(kinds.tolist(), amounts.tolist(), strict=True):
        kind, group = divmod(kind, group_count)
        act, stream = divmod(kind, len(STREAMS))
        members = step.groups[group]
        if len(members) < 2 or not amount:
            continue
        purpose = (Act(act), STREAMS[stream], len(members), _stride(members))
        found[purpose] = max(found.get(purpose, 0.0), amount)
    return dict(sorted(found.items()))


def _stride(members: NDArray[np.int32]) -> int:
    gaps = np.unique(np.diff(np.sort(members)))
    if len(gaps) != 1:
        raise ClusterError(
            f"ranks {members.tolist()[:8]} of a group are not evenly spaced: give expert or context degrees, not both"
        )
    return int(gaps[0])


def _ends(step: Step, strategy: Strategy, amount: float) -> Exchange:
    return Exchange("ends", amount, 0.0, strategy.pipeline, step.ranks // strategy.pipeline)


def _last_backward_s(step: Step, rank: int, strategy: Strategy) -> float:
    """Seconds of the backward pass of one micro-batch: gradients are complete, and sent, in the last one."""
    back = np.array(["backward" in label for label in step.labels])
    mine = (step.act == Act.COMPUTE) & (step.rank == rank) & back[step.label]
    return float(step.amount[mine].sum()) / strategy.micro_batches


def _sent_forward(step: Step) -> float:
    """Bytes that the rank that sends most sends to the next stage."""
    ahead = (step.act == Act.SEND) & (step.peer > step.rank)
    return float(np.bincount(step.rank[ahead], step.amount[ahead], minlength=1).max())
