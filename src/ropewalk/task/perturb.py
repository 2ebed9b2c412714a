"""GPUs as they are: none computes twice in exactly the same time, and some are slower than the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ropewalk.errors import Findings, GraphError
from ropewalk.task.step import Act, Step

DEFAULT_JITTER = 0.03
"""Spread of the time of a computation that people see on a quiet cluster: a few per cent."""


def perturb(
    step: Step,
    seed: int = 0,
    jitter: float = DEFAULT_JITTER,
    stragglers: Mapping[int, float] | tuple[int, float] | None = None,
) -> Step:
    """The same step with computations that vary and ranks that are slow.

    Every computation is multiplied by a lognormal factor with mean 1 and a logarithm of standard deviation `jitter`. A
    computation that stands for n others (`Step.repeats`) varies by 1/sqrt(n) of that, as their sum would. `stragglers`
    names ranks and how many times slower they are, or says how many ranks, drawn by the seed, are slower by a factor.

    >>> from ropewalk.task.step import StepSketch
    >>> sketch = StepSketch(2)
    >>> _ = [sketch.compute(rank, 1.0) for rank in (0, 1)]
    >>> perturb(sketch.step(), jitter=0.0, stragglers={1: 1.5}).amount.tolist()
    [1.0, 1.5]
    """
    findings = Findings(GraphError, "perturbed step")
    if seed < 0:
        findings.add(f"the seed is {seed}: give a whole number, 0 or more")
    random = np.random.default_rng(abs(seed))
    slow = _slow_ranks(step, random, stragglers, findings)
    if not (np.isfinite(jitter) and jitter >= 0):
        findings.add(f"jitter is {jitter}: give 0 or a small number such as {DEFAULT_JITTER}")
    for rank, factor in slow.items():
        if not 0 <= rank < step.ranks:
            findings.add(f"straggler {rank} is not a rank: give 0 to {step.ranks - 1}")
        if not (np.isfinite(factor) and factor > 0):
            findings.add(f"straggler {rank} is {factor} times slower: give a positive factor such as 1.5")
    findings.raise_if_any()

    times = np.ones(step.ranks)
    times[list(slow)] = list(slow.values())
    computes = step.act == Act.COMPUTE
    spread = jitter / np.sqrt(step.repeats[computes])
    varied = np.exp(spread * random.standard_normal(int(computes.sum())) - spread**2 / 2)
    amount = step.amount.copy()
    amount[computes] *= varied * times[step.rank[computes]]
    return replace(step, amount=amount)


def _slow_ranks(
    step: Step,
    random: np.random.Generator,
    stragglers: Mapping[int, float] | tuple[int, float] | None,
    findings: Findings,
) -> dict[int, float]:
    if stragglers is None:
        return {}
    if isinstance(stragglers, Mapping):
        return dict(stragglers)
    count, factor = stragglers
    if not 0 <= count <= step.ranks:
        findings.add(f"{count} stragglers among {step.ranks} ranks: give 0 to {step.ranks}")
        return {}
    return {int(rank): factor for rank in random.choice(step.ranks, count, replace=False)}
