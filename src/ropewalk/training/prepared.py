"""From a question about training to the step that answers it, before any time passes: model, prices, memory, step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ropewalk.device.pricer import Pricer, pricer
from ropewalk.fabric import Fabric
from ropewalk.fabric.interconnect import gpu_in
from ropewalk.strategy import Memory, Pieces, Placement, PriceList, Strategy, check, cut, memory, shares_of
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.remedies import Remedies
from ropewalk.task.lower import StepsInARow, lower, lower_steps
from ropewalk.task.step import Step
from ropewalk.training.question import TrainingQuestion
from ropewalk.training.steady import STEPS_IN_A_ROW
from ropewalk.units import show_size
from ropewalk.workload.source import FILES, open_workload
from ropewalk.workload.workload import Workload


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything about a step but its time."""

    question: TrainingQuestion
    """With nothing left open."""
    workload: Workload
    strategy: Strategy
    prices: Pricer
    listed: PriceList
    pieces: Pieces
    memory: Memory
    placement: Placement
    fabric: Fabric
    router: str
    notes: tuple[str, ...]

    @cached_property
    def step(self) -> Step:
        """One step."""
        return lower(self.workload, self.strategy, self.placement, self.listed, detail=self.question.detail)

    @cached_property
    def in_a_row(self) -> StepsInARow | None:
        """Several steps, where gradients reach from one into the next."""
        if not self.strategy.order.across_steps:
            return None
        sized = self.workload, self.strategy, self.placement, self.listed
        return lower_steps(*sized, STEPS_IN_A_ROW, self.question.detail)


def prepared(question: TrainingQuestion) -> Prepared:
    """The model, priced and split; what does not fit the model, the GPUs or their memory is refused."""
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
    needed = memory(strategy, shares, pieces, prices.precision.element_bytes)
    notes = []
    capacity = prices.device.memory_bytes
    if question.memory_check and needed.most > capacity:
        raise Remedies(workload, strategy, listed, capacity).shortage(needed, prices.device.name)
    if needed.most > capacity:
        notes.append(
            f"A GPU needs {show_size(needed.most)}, but {prices.device.name} has "
            f"{show_size(prices.device.memory_bytes)}: the step would not fit."
        )
    placement = Placement(strategy, DEFAULT_ORDER if question.order is None else question.order)
    return Prepared(
        question, workload, strategy, prices, listed, pieces, needed, placement, fabric, router, tuple(notes)
    )


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
