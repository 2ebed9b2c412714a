"""Plain data parallelism: every GPU has the whole model and some of the samples.

It must be judged with its gradients added up while the backward pass still runs, or pipelines look better than they
are: VGG-19 on fast machines would be cut in two.
"""

from __future__ import annotations

from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.judge import Judged, judge
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.strategy.part import Part


def data_parallel_plans(costs: Costs) -> tuple[PipelinePlan, ...]:
    """One stage on all GPUs, for every size of micro-batches up to the whole batch.

    The longer the last backward pass, the more sums hide behind it; the smaller micro-batches, the less is kept.
    """
    terms = costs.terms
    stage = Part(0, costs.states - 1, tuple(range(costs.machines.gpus)))
    return tuple(
        PipelinePlan((stage,), "1f1b", size, terms.global_batch // size, recompute)
        for recompute in terms.recompute
        for size in terms.micro_batch_sizes()
    )


def data_parallel(costs: Costs) -> Judged | str:
    """The fastest of them that fits, or the reason why none does; sums overlap as the terms of the costs say."""
    best: Judged | None = None
    reason = ""
    for plan in data_parallel_plans(costs):
        judged = judge(costs, plan)
        if not isinstance(judged, Judged):
            reason = reason or judged.reason
        elif best is None or judged.step_s < best.step_s:
            best = judged
    return best or reason
