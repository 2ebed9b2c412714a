"""From a question about training to its answer: workload, strategy, prices, step, tasks, run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ropewalk.device.pricer import Pricer, pricer
from ropewalk.fabric.interconnect import gpu_in
from ropewalk.sim.step import statistics
from ropewalk.strategy import Placement, PriceList, Strategy, check, cut, memory, shares_of
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.task.lower import lower
from ropewalk.task.perturb import perturb
from ropewalk.training.answer import TrainingAnswer
from ropewalk.training.network import expand_on, run_on
from ropewalk.training.question import TrainingQuestion
from ropewalk.units import show_size
from ropewalk.workload.opaque import Measured
from ropewalk.workload.source import FILES, open_workload
from ropewalk.workload.workload import Workload

Advance = Callable[[int, int | None, str], None]
"""Called with (done, of how many, what is being done) while the answer is worked out."""


def answer(question: TrainingQuestion, advance: Advance | None = None) -> TrainingAnswer:
    """How long a step takes, why, and whether it fits.

    >>> found = answer(TrainingQuestion("gpt2", gpus=2))
    >>> found.statistics.step_time_s > found.statistics.compute_s > 0
    True
    """
    say = advance or (lambda done, total, now: None)
    say(0, None, "reading the model")
    strategy, workload = _sized(question)
    check(strategy, workload, question.gpu_count)
    prices = pricer(question.device, question.precision)
    gpu = gpu_in(prices.device.title) or prices.device.name  # tables of measurements know it by its title
    question = replace(question, network=question.network.settled(gpu))
    fabric = question.place.fabric()
    router = question.network.router_on(fabric)
    shares = shares_of(workload, strategy)
    listed = PriceList(prices)
    pieces = cut(workload, strategy, shares, listed)
    needed = memory(workload, strategy, shares, pieces, prices.precision.element_bytes)
    notes = []
    if question.memory_check:
        needed.check(prices.device.name, prices.device.memory_bytes)
    elif needed.most > prices.device.memory_bytes:
        notes.append(
            f"A GPU needs {show_size(needed.most)}, but {prices.device.name} has "
            f"{show_size(prices.device.memory_bytes)}: the step would not fit."
        )

    placement = Placement(strategy, DEFAULT_ORDER if question.order is None else question.order)
    say(0, None, "writing the step")
    step = lower(workload, strategy, placement, listed, detail=question.detail)
    if question.jitter or question.stragglers:
        step = perturb(step, question.network.seed, jitter=question.jitter, stragglers=question.stragglers)
    say(0, None, "writing its tasks")
    expansion = expand_on(step, fabric, question.network)
    run = run_on(step, expansion, fabric, question.network, lambda done, total: say(done, total, "tasks done"))
    notes += run.network.sentences() if run.network is not None else []
    samples = strategy.global_batch
    found = statistics(
        run,
        peak_flops=prices.device.peak_flops.get(prices.precision.name),
        samples=samples,
        tokens=samples * workload.sequence if workload.sequence else None,
    )
    return TrainingAnswer(
        question, workload, strategy, pieces, placement.stage_of().astype(np.int64), fabric, router, needed,
        prices.device.memory_bytes, _cost_source(workload, prices), expansion, run, found, tuple(notes),
    )  # fmt: skip


def _cost_source(workload: Workload, prices: Pricer) -> str:
    """Where the times of computations come from; profiles bring their own, whatever the device."""
    measured = sum(any(isinstance(op, Measured) for op in layer.operators) for layer in workload.layers)
    if not measured:
        return prices.source
    layers = "all layers" if measured == len(workload.layers) else f"{measured} of {len(workload.layers)} layers"
    return f"{layers}: times of {workload.source}; all else: {prices.source}"


def _sized(question: TrainingQuestion) -> tuple[Strategy, Workload]:
    """The strategy, and the model for one micro-batch: where no size is given, files keep the one they have."""
    strategy, model = question.strategy(), question.model
    sized = question.batch or question.micro_batch or question.decided
    if isinstance(model, Workload):
        workload = model.at_batch(strategy.micro_batch) if sized else model
    else:
        own = not sized and Path(model).suffix.lower() in FILES
        workload = open_workload(model, None if own else strategy.micro_batch, question.sequence)
    return replace(strategy, micro_batch=workload.batch), workload
