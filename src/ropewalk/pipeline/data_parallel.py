"""Plain data parallelism: every GPU has the whole model and some of the samples.

It must be judged with its gradients added up while the backward pass still runs, or pipelines look better than they
are: VGG-19 on fast machines would be cut in two.
"""

from __future__ import annotations

from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.judge import Judged, judge
from ropewalk.pipeline.plan import Plan
from ropewalk.strategy.part import Part


def data_parallel_plans(costs: Costs) -> tuple[Plan, ...]:
    """One stage on all GPUs, for every size of micro-batches up to the whole batch.

    The longer the last backward pass, the more sums hide behind it; the smaller micro-batches, the less is kept.
    """
    terms = costs.terms
    stage = Part(0, costs.states - 1, tuple(range(costs.machines.gpus)))
    return tuple(
        Plan((stage,), "1f1b", size, terms.global_batch // size, recompute)
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


def bucketed_tail(costs: Costs, plan: Plan, bucket_bytes: float) -> float:
    """Seconds that sums outlast the backward pass of a one-stage plan when gradients travel in buckets.

    A bucket is full when it holds `bucket_bytes` of gradients, taken from the last state to the first, and leaves when
    its last gradient is there and the bucket before it has arrived.
    """
    (stage,) = plan.stages
    line = costs.summing_gradients(stage)
    prices = costs.of_share(plan.micro_batch, stage)
    end = float(prices.backward_s[-1])
    filled, free = 0.0, 0.0
    for state in range(costs.states - 1, -1, -1):
        filled += float(prices.parameter_bytes[state + 1] - prices.parameter_bytes[state])
        ready = end - float(prices.backward_s[state])
        if filled >= bucket_bytes or (state == 0 and filled > 0):
            free = max(free, ready) + line.seconds(filled)
            filled = 0.0
    return max(0.0, free - end)
