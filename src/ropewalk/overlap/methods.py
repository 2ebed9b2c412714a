"""Methods of synchronising gradients, on one model and one link: what frameworks do, and what has been published.

A `MethodStep` says how long a step takes and, where it can be drawn, what the network carries when. `METHODS` is the
table of methods; some need all-reduces, some parameter servers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.choices import Choice, Choices
from ropewalk.overlap.buckets import buckets
from ropewalk.overlap.dear import tuned
from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import LaunchTimes, in_ready_order, timed
from ropewalk.overlap.link import ExchangeKind, Link
from ropewalk.overlap.merging import merged_gradients
from ropewalk.overlap.orders import order_of_groups, order_of_launches, order_of_run
from ropewalk.overlap.plans import fused_plan, streamed_plan
from ropewalk.overlap.policy import OverlapPolicy, byteps, fifo, released_bytescheduler
from ropewalk.overlap.scheduler import OverlapRun, schedule
from ropewalk.overlap.tensors import Tensors
from ropewalk.palette import AMBER, BLUE, GREEN, GREY, PINK, PURPLE, RED, RUST, SKY
from ropewalk.strategy.order import DDP_BUCKET, Order

BYTEPS_CREDITS = 4
"""Pieces on their way that BytePS' documentation suggests where its scheduling is turned on."""


@dataclass(frozen=True)
class HandedBytes:
    """Some bytes on the network, handed over as one operation."""

    operation: str
    """all-reduce, its halves reduce-scatter and all-gather, push or pull."""
    begin_s: float
    end_s: float
    size_bytes: float
    """Of the tensors, or of the pieces of them that are handed over."""
    tensors: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class MethodStep:
    """A method of synchronising gradients, and the step that it makes."""

    name: str
    """A method of `METHODS`."""
    step_s: float
    """As the model of one link estimates it."""
    launches: int
    """Operations that are handed to the library in a step."""
    groups: Groups
    """Tensors that are added up together."""
    moves: tuple[HandedBytes, ...] = ()
    """What the network carries when, in its order; empty where only the step is known."""
    forward_start_s: Floats | None = None
    """When every layer starts in the next forward pass, where there are moves."""
    order: Order | None = None
    """The same for a lowered step; None where that cannot run it: halves of all-reduces, parameter servers."""
    simulated_s: float | None = None
    """A step of it on the fabric, None where it was not simulated."""

    @property
    def what(self) -> str:
        """What its method does."""
        return METHODS[self.name].about

    @property
    def time_s(self) -> float:
        """A step: simulated where it was, as estimated otherwise."""
        return self.step_s if self.simulated_s is None else self.simulated_s


@dataclass(frozen=True, eq=False)
class Scene:
    """A model on a link, with the settings that priority scheduling takes."""

    tensors: Tensors
    link: Link
    policy: OverlapPolicy
    rounds_s: float = 0.0
    widest: int | None = None
    """Tensors of a group at most, where there are so many that the search would take minutes."""


def _by_policy(name: str, scene: Scene, policy: OverlapPolicy) -> MethodStep:
    run = schedule(scene.tensors, scene.link, policy)
    return MethodStep(
        name, run.step_s, len(run.pieces), Groups.singles(scene.tensors.in_ready_order), tuple(_moves(run)),
        run.forward_start_s, None if scene.link.duplex else order_of_run(run),
    )  # fmt: skip


def _moves(run: OverlapRun) -> list[HandedBytes]:
    """Pieces of one tensor that follow each other at once are drawn as one."""
    found = []
    operations = [("push", run.push_start_s, run.push_end_s), ("pull", run.pull_start_s, run.pull_end_s)]
    if not run.link.duplex:
        operations = [("all-reduce", run.push_start_s, run.push_end_s)]
    for operation, begins, ends in operations:
        in_time = np.argsort(begins, kind="stable")
        runs: list[list[int]] = []
        for piece in in_time.tolist():
            before = runs[-1][-1] if runs else -1
            if before >= 0 and run.pieces.tensor[before] == run.pieces.tensor[piece] and begins[piece] <= ends[before]:
                runs[-1].append(piece)
            else:
                runs.append([piece])
        found += [
            HandedBytes(operation, float(begins[part[0]]), float(ends[part[-1]]),
                        float(run.pieces.size_bytes[part].sum()), (int(run.pieces.tensor[part[0]]),))
            for part in runs
        ]  # fmt: skip
    return found


def _by_launches(name: str, scene: Scene, run: LaunchTimes, order: Order) -> MethodStep:
    """A plan of launches."""
    launches = run.launches
    starts = scene.tensors.forward_start(run.arrival_s, barrier=not order.across_steps)
    number = np.cumsum(launches.begins) - 1
    moves = []
    for _, part in groupby(range(len(number)), key=lambda piece: int(number[piece])):
        pieces = list(part)
        if launches.arrival is Arrival.TOGETHER:
            carried = launches.groups.members[launches.group[pieces[0]]]
        else:
            carried = tuple(dict.fromkeys(launches.tensor[pieces].tolist()))
        moves.append(
            HandedBytes("all-reduce", float(run.begin_s[pieces[0]]), float(run.end_s[pieces[-1]]),
                 float(launches.size_bytes[pieces].sum()), carried)
        )  # fmt: skip
    step = float(starts[-1] + scene.tensors.forward_s[-1])
    return MethodStep(name, step, launches.count, launches.groups, tuple(moves), starts, order)


def _in_order(name: str, scene: Scene, groups: Groups, order: Order, collectives: Sequence[int] = ()) -> MethodStep:
    """Groups one after the other as they are ready, and a barrier behind all of them."""
    sums = one_stream_sums(scene.tensors)
    run = timed(sums, scene.link, in_ready_order(sums, groups), collectives=collectives)
    return _by_launches(name, scene, run, order)


def first_come(scene: Scene) -> MethodStep:
    """Whole tensors in order of readiness."""
    return _by_policy("fifo", scene, fifo())


def bucketed(scene: Scene) -> MethodStep:
    """Layers collected as a lowered step collects them: one that overfills a bucket is several collectives."""
    groups = buckets(scene.tensors, (DDP_BUCKET,))
    sizes = [float(scene.tensors.size_bytes[list(group)].sum()) for group in groups.members]
    filled = [max(1, round(size / DDP_BUCKET)) for size in sizes]
    return _in_order("buckets", scene, groups, Order(), filled)


def merged(scene: Scene) -> MethodStep:
    groups = merged_gradients(scene.tensors, scene.link)
    return _in_order("merged", scene, groups, order_of_groups(scene.tensors, groups))


def by_priority(scene: Scene) -> MethodStep:
    return _by_policy("priority", scene, scene.policy)  # fmt: skip


def as_released(scene: Scene) -> MethodStep:
    return _by_policy("released", scene, released_bytescheduler())


def as_byteps(scene: Scene) -> MethodStep:
    """With scheduling on, whatever its piece size: a credit of several pieces."""
    return _by_policy("byteps", scene, byteps(credits=BYTEPS_CREDITS))


def taken_apart(scene: Scene) -> MethodStep:
    found = tuned(scene.tensors, scene.link, scene.rounds_s)
    members = found.groups.members
    halves = [("reduce-scatter", number, *times) for number, times in enumerate(found.scatter_s.tolist())]
    halves += [("all-gather", number, *times) for number, times in enumerate(found.gather_s.tolist())]
    moves = tuple(
        HandedBytes(
            half, begin, end, float(scene.tensors.size_bytes[list(members[number])].sum()), tuple(members[number])
        )
        for half, number, begin, end in sorted(halves, key=lambda half: half[2])
    )
    starts = scene.tensors.forward_start(found.arrival_s)
    return MethodStep("dear", found.step_s, len(moves), found.groups, moves, starts)


def fused(scene: Scene) -> MethodStep:
    run = fused_plan(scene.tensors, scene.link, widest=scene.widest)
    return _by_launches("fused", scene, run, order_of_launches(scene.tensors, run.launches))


def streamed(scene: Scene) -> MethodStep:
    """Layers that arrive one by one, or the fused plan where that is as good."""
    tensors, link, widest = scene.tensors, scene.link, scene.widest
    alone = (Groups.singles(range(len(tensors))),)
    apart = streamed_plan(tensors, link, rounds_s=scene.rounds_s, widest=widest, blockings=alone).run
    together = fused_plan(tensors, link, widest=widest)
    run = together if together.step_s <= apart.step_s else apart
    return _by_launches("streamed", scene, run, order_of_launches(tensors, run.launches))


def _one_resource(kind: ExchangeKind) -> str | None:
    return None if kind is ExchangeKind.ALL_REDUCE else "needs all-reduce, and push and pull are two resources"


def _two_directions(kind: ExchangeKind) -> str | None:
    return None if kind is ExchangeKind.PARAMETER_SERVER else "uses push and pull, and there are no parameter servers"


ALL_REDUCES, SERVERS = "all-reduce", "parameter servers"

METHODS: Choices[Choice[Callable[[Scene], MethodStep]]] = Choices(
    "method",
    (
        Choice("fifo", first_come, "every layer when its gradients are ready, then a barrier", title="first come",
               colour=GREY),
        Choice("buckets", bucketed, "25 MiB buckets as PyTorch DDP makes them, then a barrier", _one_resource,
               ALL_REDUCES, "PyTorch DDP", AMBER),
        Choice("merged", merged, "MG-WFBP: merged where waiting is shorter than a start-up, then a barrier",
               _one_resource, ALL_REDUCES, "MG-WFBP", RUST),
        Choice("priority", by_priority, "ByteScheduler: partitions by priority within a credit, across the barrier",
               title="ByteScheduler", colour=BLUE),
        Choice("released", as_released, "ByteScheduler with its default sizes; credit is returned with the pull",
               _two_directions, SERVERS, "its defaults", SKY),
        Choice("byteps", as_byteps, f"BytePS: partitions of 4 MB, {BYTEPS_CREDITS} in flight, those that do not fit "
            "are "
               "skipped", _two_directions, SERVERS, "BytePS", PURPLE),
        Choice("dear", taken_apart, "DeAR: reduce-scatters during the backward pass, all-gathers before the forward "
               "pass, best group size", _one_resource, ALL_REDUCES, "DeAR", PINK),
        Choice("fused", fused, "PACE: fused and partitioned, ordered by dependents, across the barrier", _one_resource,
               ALL_REDUCES, "PACE", GREEN),
        Choice("streamed", streamed, "fused, and each layer is used as soon as it arrives", _one_resource,
               ALL_REDUCES, "PACE, by layer", RED),
    ),
)  # fmt: skip
"""All methods, from the plainest to the most elaborate; a new one is a function that makes a `MethodStep` and a row."""

MOST_FREELY_GROUPED = 300
WIDEST = 64
"""Tensors of a group that PACE's search looks at, where groups may not be of any size."""


def scene_of(tensors: Tensors, link: Link, policy: OverlapPolicy, rounds_s: float) -> Scene:
    """Groups of any size, or of at most `WIDEST` tensors where the model has very many."""
    return Scene(tensors, link, policy, rounds_s, WIDEST if len(tensors) > MOST_FREELY_GROUPED else None)


def whole(size_bytes: float) -> float | None:
    """A size for files: None where there is no limit."""
    return None if size_bytes == inf else size_bytes
