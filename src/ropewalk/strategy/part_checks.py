"""Do the parts of a strategy cover the model, and is every rank in one place?"""

from __future__ import annotations

from collections.abc import Iterator

from ropewalk.errors import StrategyError
from ropewalk.strategy.part import Part
from ropewalk.strategy.strategy import Strategy
from ropewalk.workload.workload import Workload


def parts_findings(plan: Strategy, workload: Workload) -> Iterator[str]:
    """What is wrong with the parts, each with a remedy."""
    yield from _one_pipeline(plan)
    yield from _layers(plan, len(workload.layers))
    yield from _workers(plan)


def _one_pipeline(plan: Strategy) -> Iterator[str]:
    """With parts, degrees are theirs."""
    for name in ("data", "tensor", "context", "expert"):
        if getattr(plan, name) > 1:
            yield f"{name} is {getattr(plan, name)} together with parts, which have their own workers: set {name} to 1"
    if plan.sequence_parallel and all(one.tensor == 1 for one in plan.parts):
        yield (
            "sequence parallelism splits over tensor ranks, but no part has several: give one tensor ranks or turn "
            "it off"
        )
    if plan.fold_experts:
        yield "folded experts are spread over ranks of equal degrees, and parts have their own: leave fold_experts out"
    if plan.shared_overlap:
        yield "shared experts are computed while tokens travel between equal ranks: leave shared_overlap out"
    if plan.stages is not None:
        yield "stages are given twice, by their first layers and as parts: leave stages out"
    if len(plan.parts) != plan.pieces:
        yield (
            f"{len(plan.parts)} parts for {plan.pipeline} stages of {plan.pieces_each} pieces: give {plan.pieces}, "
            "one for each piece of the model"
        )


def _layers(plan: Strategy, layers: int) -> Iterator[str]:
    expected = 0
    for number, one in enumerate(plan.parts):
        if one.first != expected or one.last < one.first:
            yield (
                f"part {number} has layers {one.first} to {one.last} where {expected} comes next: "
                "give each layer once and in order"
            )
        expected = one.last + 1
    if expected != layers:
        yield f"parts end with layer {expected - 1} of {layers}: give the last part the rest"


def _workers(plan: Strategy) -> Iterator[str]:
    for number, one in enumerate(plan.parts):
        if not one.workers or one.tensor < 1 or len(one.workers) % max(one.tensor, 1):
            yield f"part {number} has {len(one.workers)} workers in groups of {one.tensor}: give it whole groups"
        if any(worker < 0 for worker in one.workers):
            yield f"part {number} has a negative rank among its workers: count from 0"
    sets = tuple(dict.fromkeys((one.workers, one.tensor) for one in plan.parts))
    used = [worker for workers, _ in sets for worker in workers]
    if len(set(used)) != len(used):
        yield "two parts share some but not all workers: let them share all, with the same split, or none"
    elif len(plan.parts) == plan.pieces:
        try:
            homes = plan.timetable.device_of_piece.tolist()
        except StrategyError:
            return  # found with the schedule
        yield from _homes(plan, homes[: plan.pieces])
        yield from _mirrored(plan, homes[plan.pieces :])


def _homes(plan: Strategy, homes: list[int]) -> Iterator[str]:
    """Pieces of one stage are on the same workers."""
    first: dict[int, int] = {}
    for piece, (stage, one) in enumerate(zip(homes, plan.parts, strict=True)):
        before = first.setdefault(stage, piece)
        if plan.parts[before].workers != one.workers:
            yield (
                f"schedule {plan.schedule} puts parts {before} and {piece} on one stage, but their workers differ: "
                "give them the same"
            )
    if len({plan.parts[piece].workers for piece in first.values()}) < len(first):
        yield "two stages have the same workers: join their parts, or use a schedule with several pieces on each stage"


def _mirrored(plan: Strategy, homes: list[int]) -> Iterator[str]:
    """The second copy of a part lies on the ranks of another part: gradients are reduced shard by shard over both."""
    for piece, home in enumerate(homes):
        one, other = plan.parts[piece], plan.parts[home]
        if piece < home and one.tensor != other.tensor:
            yield (
                f"schedule {plan.schedule} keeps parts {piece} and {home} on the ranks of both, but they are split "
                f"over {one.tensor} and {other.tensor} tensor ranks: give both the same tensor degree"
            )


def uneven_samples(one: Part, samples: int, layer: str) -> Iterator[str]:
    """Servers that share the samples of a layer take equal parts."""
    if samples % one.replicas:
        yield (
            f"layer {layer}: {samples} samples do not divide into {one.replicas} equal parts: "
            f"give a batch that {one.replicas} servers share equally"
        )
