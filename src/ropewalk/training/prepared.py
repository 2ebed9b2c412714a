"""From a question about training to the step that answers it, before any time passes: model, prices, memory, step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ropewalk.device.device import Device, unlimited
from ropewalk.device.pricer import Pricer, pricer
from ropewalk.errors import Findings, MemoryShortage, StrategyError
from ropewalk.fabric import Fabric
from ropewalk.fabric.interconnect import gpu_in
from ropewalk.strategy import KeptPrices, Memory, Pieces, Placement, Strategy, check, cut, memory, shares_of
from ropewalk.strategy.memory import host_bytes
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.remedies import Remedies
from ropewalk.strategy.server import Server
from ropewalk.strategy.strategy import SERVER
from ropewalk.task.lower import StepsInARow, lower, lower_steps
from ropewalk.task.step import Step
from ropewalk.training.inside import inside_of
from ropewalk.training.question import TrainingQuestion
from ropewalk.training.steady import STEPS_IN_A_ROW
from ropewalk.units import show_size
from ropewalk.workload.opaque import Measured
from ropewalk.workload.source import FILES, open_workload
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo.stacks import stack_of


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything about a step but its time."""

    question: TrainingQuestion
    """With nothing left open."""
    workload: Workload
    strategy: Strategy
    prices: Pricer
    gpus_per_rank: int
    pieces: Pieces
    memory: Memory
    stage_of_rank: NDArray[np.int64]
    fabric: Fabric
    router: str
    write: Callable[[], Step]
    """Writes the step, which may take a while."""
    write_row: Callable[[], StepsInARow] | None = None
    """Writes several steps, where gradients reach from one into the next."""
    notes: tuple[str, ...] = ()

    @property
    def peak_flops(self) -> float | None:
        """Of one rank."""
        return self.prices.device.peak(self.prices.precision) * self.gpus_per_rank

    @property
    def tokens(self) -> float | None:
        """Of a step; None where samples have none."""
        return self.strategy.global_batch * self.workload.sequence if self.workload.sequence else None

    @property
    def cost_source(self) -> str:
        """Where the times of computations come from; profiles bring their own, whatever the device."""
        layers, prices = self.workload.layers, self.prices
        measured = sum(any(isinstance(op, Measured) for op in layer.operators) for layer in layers)
        if not measured:
            return prices.source
        which = "all layers" if measured == len(layers) else f"{measured} of {len(layers)} layers"
        return f"{which}: times of {self.workload.source}; all else: {prices.source}"


def prepared(question: TrainingQuestion) -> Prepared:
    """The model, priced and split; what does not fit the model, the GPUs or their memory is refused."""
    prices = pricer(question.device, question.precision)
    gpu = gpu_in(prices.device.title) or prices.device.name  # tables of measurements know it by its title
    settled = replace(question, network=question.network.settled(gpu, question.place))
    decided = question.decided
    by_server = decided is not None and decided.grain == SERVER
    return _with_notes((_on_servers if by_server else _on_gpus)(settled, prices))


def _on_gpus(question: TrainingQuestion, prices: Pricer) -> Prepared:
    """Every rank is a GPU."""
    strategy, workload = _sized(question)
    question = replace(question, network=question.network.run_by(stack_of(workload)))
    check(strategy, workload, question.gpu_count)
    _check_narrow(strategy, workload, prices)
    prices = prices.sustained(workload)
    fabric = question.fabric()
    router = question.network.router_on(fabric)
    shares = shares_of(workload, strategy)
    order = DEFAULT_ORDER if question.order is None else question.order
    inside = inside_of(question.place, question.network, order, prices.device, stack_of(workload))
    listed = KeptPrices(prices, inside)
    pieces = cut(workload, strategy, shares, listed)
    needed = memory(strategy, shares, pieces, prices.numbers)
    if question.memory_check and needed.most > prices.device.memory_bytes:
        raise Remedies(workload, strategy, listed, prices.device.memory_bytes).shortage(
            needed, unlimited(prices.device.name)
        )
    if question.memory_check and prices.device.host is not None:
        check_host(prices.device, host_bytes(strategy, shares, pieces))
    placement = Placement(strategy, order)
    return Prepared(
        question, workload, strategy, prices, 1, pieces, needed, placement.stage_of().astype(np.int64), fabric, router,
        lambda: lower(workload, strategy, placement, listed, detail=question.detail),
        None if not strategy.order.across_steps else lambda: lower_steps(
            workload, strategy, placement, listed, STEPS_IN_A_ROW, question.detail
        ),
    )  # fmt: skip


def check_host(gpu: Device, needed: float) -> None:
    """Refuse a state that the host's memory does not hold."""
    if gpu.host is not None and needed > gpu.host.memory:
        raise MemoryShortage(
            f"memory: the optimiser's state needs {show_size(needed)} of the host's memory for each GPU, and "
            f"{unlimited(gpu.name)} has {show_size(gpu.host.memory)}: raise --zero, --tp or --pp",
            needed,
        )


def _check_narrow(strategy: Strategy, workload: Workload, prices: Pricer) -> None:
    """Refuse narrow weights where no product is narrow, or none is kept so."""
    findings = Findings(StrategyError, "weights with low-precision copies only")
    for problem in narrow_findings(strategy, workload, prices):
        findings.add(problem)
    findings.raise_if_any()


def narrow_findings(strategy: Strategy, workload: Workload, prices: Pricer) -> Iterator[str]:
    """Why weights cannot have narrow copies alone, where they shall."""
    if not strategy.narrow_weights:
        return
    if not prices.precision.is_narrow:
        yield f"{prices.precision.name} has no low-precision weights: give --dtype fp8, or leave --fp8-params out"
    if not stack_of(workload).transformer_engine:
        yield f"the {workload.stack or 'own'} stack keeps full-precision weights: give --stack megatron"
    if strategy.zero == 3:
        yield "ZeRO-3 gathers full-precision weights: give --zero 1 or 2"


def _on_servers(question: TrainingQuestion, prices: Pricer) -> Prepared:
    """Every rank is a server whose GPUs act as one, and every layer has servers of its own."""
    strategy, model = question.strategy(), question.model
    workload = model if isinstance(model, Workload) else open_workload(model, None, question.sequence)
    question = replace(question, network=question.network.run_by(stack_of(workload)))
    group = question.place.equal
    check(strategy, workload, group.count)
    prices = prices.sustained(workload)
    server = Server(group.gpus, group.nvlink_bandwidth, prices.device.memory_bytes)
    shares, fabric = shares_of(workload, strategy, server), question.fabric()
    pieces = cut(workload, strategy, shares, KeptPrices(prices))
    needed = memory(strategy, shares, pieces, prices.numbers).fullest
    if question.memory_check and needed.most > prices.device.memory_bytes:
        raise MemoryShortage(
            f"memory: the fullest server of the plan needs {show_size(needed.most)} on each GPU, and "
            f"{unlimited(prices.device.name)} has {show_size(prices.device.memory_bytes)}: write the plan again for "
            "this cluster",
            needed.most,
        )
    return Prepared(
        question, workload, strategy, prices, group.gpus, Pieces((0,), len(workload.layers), (0,)),
        needed, np.zeros(strategy.ranks, np.int64), fabric, question.network.router_on(fabric),
        lambda: lower(workload, strategy, Placement(strategy), prices, server=server),
    )  # fmt: skip


def _with_notes(made: Prepared) -> Prepared:
    """Note what does not fit into memory."""
    device = made.prices.device
    if made.memory.most <= device.memory_bytes:
        return made
    needed, there = show_size(made.memory.most), show_size(device.memory_bytes)
    return replace(
        made, notes=(f"A GPU needs {needed}, but {unlimited(device.name)} has {there}: the step would not fit.",)
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
