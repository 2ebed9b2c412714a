"""Fill in what a person leaves open: the degree that makes the product come out, and how a batch is cut up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ropewalk.errors import Findings, StrategyError
from ropewalk.strategy.strategy import Strategy

MICRO_BATCHES_PER_STAGE = 4
"""Micro-batches for each stage of a pipeline where neither they nor the batch are given: a bubble of about a fifth."""

DEGREES = ("tensor", "pipeline", "context")


def derive(
    gpus: int,
    degrees: Mapping[str, int | None],
    *,
    batch: int | None = None,
    micro_batch: int | None = None,
    usual: Strategy | None = None,
) -> Strategy:
    """A strategy for this many GPUs from the degrees that were given (data, tensor, pipeline, context, expert).

    Tensor, pipeline and context are 1 unless given, data is what is left of the GPUs. `batch` is the number of samples
    in a whole step: without a pipeline each data rank takes its part in one micro-batch unless `micro_batch` says
    otherwise, with one it goes through sample by sample. `usual` holds everything else.

    >>> derive(16, {"tensor": 8}, batch=64).micro_batch
    32
    """
    findings = Findings(StrategyError, f"strategy for {gpus} GPUs")
    for name, degree in {**degrees, "micro_batch": micro_batch}.items():
        if degree is not None and degree < 1:
            findings.add(f"{name} is {degree}: give 1 or more, or leave it out")
    findings.raise_if_any()
    known = {name: degrees.get(name) or 1 for name in DEGREES}
    others = known["tensor"] * known["pipeline"] * known["context"]
    data = degrees.get("data")
    if data is None:
        if others > gpus or gpus % others:
            factors = [f"{name} {degree}" for name, degree in known.items() if degree > 1]
            product, which = f"{' x '.join(factors)} = {others}", "one of them"
            if len(factors) == 1:
                product, which = factors[0], "it"
            findings.add(
                f"{product} does not divide {gpus} GPUs: lower {which} or ask for "
                f"{others * max(1, round(gpus / others))} GPUs"
            )
        data = max(1, gpus // others)
    plan = replace(
        usual or Strategy(),
        data=data,
        tensor=known["tensor"],
        pipeline=known["pipeline"],
        context=known["context"],
        expert=degrees.get("expert") or 1,
    )
    size, count = _cut_up(plan, batch, micro_batch, findings)
    findings.raise_if_any()
    return replace(plan, micro_batch=size, micro_batches=count)


def _cut_up(plan: Strategy, batch: int | None, micro_batch: int | None, findings: Findings) -> tuple[int, int]:
    """Samples of a micro-batch, and micro-batches of a data rank."""
    if batch is None:
        return micro_batch or plan.micro_batch, MICRO_BATCHES_PER_STAGE * plan.pipeline if plan.pipeline > 1 else 1
    if batch < 1 or batch % plan.data:
        near = max(1, round(batch / plan.data)) * plan.data
        findings.add(f"a batch of {batch} samples does not divide over {plan.data} data ranks: give {near}")
        return 1, 1
    per_rank = batch // plan.data
    size = micro_batch or (1 if plan.pipeline > 1 else per_rank)
    if per_rank % size:
        fits = ", ".join(str(ways) for ways in range(1, min(per_rank, 64) + 1) if per_rank % ways == 0)
        findings.add(
            f"the {per_rank} samples of a data rank do not divide into micro-batches of {size}: use one of {fits}"
        )
        return 1, 1
    return size, per_rank // size
