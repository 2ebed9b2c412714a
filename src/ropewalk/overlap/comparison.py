"""Where the order of communication helps and where it does not: every policy on models, speeds and start-up costs.

A row compares policies on one ring of workers. What an operation costs besides its bytes has two parts: launching it,
once, and the rounds of the ring, each of which passes the network once. Fusing saves both. Streaming saves launches and
goes through rounds again for each block of tensors, so it lives on launches that are dear and rounds that are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

from ropewalk.overlap.bounds import lower_bounds
from ropewalk.overlap.buckets import buckets, groups_with_barrier_s
from ropewalk.overlap.dear import tuned
from ropewalk.overlap.groups import Groups
from ropewalk.overlap.link import Link, ring_link
from ropewalk.overlap.merging import merged_gradients
from ropewalk.overlap.plans import fused_plan, streamed_plan
from ropewalk.overlap.tensors import Tensors

LAUNCHES_S = (20e-6, 500e-6)
"""A launch on GPUs with a good library, and one over TCP with a coordinator."""
HOP_S = 2e-6
SPEEDS_GBPS = (10.0, 25.0, 100.0)


@dataclass(frozen=True)
class OverlapComparison:
    """One model on one ring, policy by policy, in seconds of a step."""

    model: str
    gbps: float
    launch_s: float
    hop_s: float
    workers: int
    compute_s: float
    fifo_s: float
    """Every tensor on its own, in the order in which gradients are ready."""
    ddp_s: float
    """Buckets of PyTorch's default sizes, and a barrier."""
    mg_wfbp_s: float
    """Merged gradients, and a barrier."""
    dear_s: float
    """Reduce-scatters and all-gathers apart, with the best of several sizes of groups."""
    pace_s: float
    """Fused, cut and ordered by urgency, across the end of the step."""
    streamed_s: float
    """The same where launches may stream."""
    lower_bound_s: float
    """No start-ups, free cuts, the best order."""
    pace_launches: int
    streamed_launches: int

    def row(self) -> dict[str, object]:
        return asdict(self)


def ring_with_launches(workers: int, bandwidth: float, launch_s: float, hop_s: float) -> tuple[Link, float]:
    """A ring whose operations cost a launch and 2(n-1) hops besides their bytes; -> (link, seconds of its rounds)."""
    ring = ring_link(workers, bandwidth, hop_s)
    return replace(ring, start_up_s=ring.start_up_s + launch_s), ring.start_up_s


def compare(
    tensors: Tensors, gbps: float, workers: int, launch_s: float, hop_s: float = HOP_S, widest: int | None = None
) -> OverlapComparison:
    """All policies for one model on one ring of workers with NICs of `gbps`."""
    link, rounds_s = ring_with_launches(workers, gbps * 1e9 / 8, launch_s, hop_s)
    fused = fused_plan(tensors, link, widest=widest)
    streamed = streamed_plan(tensors, link, rounds_s=rounds_s, widest=widest)
    return OverlapComparison(
        model=tensors.model,
        gbps=gbps,
        launch_s=launch_s,
        hop_s=hop_s,
        workers=workers,
        compute_s=tensors.compute_s,
        fifo_s=groups_with_barrier_s(tensors, link, Groups.singles(tensors.in_ready_order)),
        ddp_s=groups_with_barrier_s(tensors, link, buckets(tensors)),
        mg_wfbp_s=groups_with_barrier_s(tensors, link, merged_gradients(tensors, link)),
        dear_s=tuned(tensors, link, rounds_s).step_s,
        pace_s=fused.step_s,
        streamed_s=streamed.step_s,
        lower_bound_s=lower_bounds(tensors, link).step_s,
        pace_launches=fused.launches.count,
        streamed_launches=streamed.run.launches.count,
    )


def comparisons(
    models: Iterable[Tensors],
    speeds_gbps: Iterable[float] = SPEEDS_GBPS,
    workers: Iterable[int] = (16,),
    launches_s: Iterable[float] = LAUNCHES_S,
    hop_s: float = HOP_S,
) -> Iterator[OverlapComparison]:
    """Rows for every model, speed, number of workers and cost of a launch."""
    speeds, sizes, costs = tuple(speeds_gbps), tuple(workers), tuple(launches_s)
    for tensors in models:
        for gbps in speeds:
            for count in sizes:
                for launch_s in costs:
                    yield compare(tensors, gbps, count, launch_s, hop_s)
