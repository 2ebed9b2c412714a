"""What is planned for, priced: the workload of a question, its layers in seats, and networks as the search sees them.

Everything here is made from a question alone, so that a chain of the search can make it where it runs, in another
process or on another machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TypeVar

from ropewalk.codesign.baselines import BASELINES, Site
from ropewalk.codesign.demand_of import priced_demands
from ropewalk.codesign.demands import Demands
from ropewalk.codesign.estimate import SeatingEstimate
from ropewalk.codesign.finder import find_topologies, find_topology
from ropewalk.codesign.link_loads import LinkLoads
from ropewalk.codesign.network import StepNetwork, wired_network
from ropewalk.codesign.permutations import paper_jumps
from ropewalk.codesign.question import PlanQuestion
from ropewalk.codesign.routes import router_of
from ropewalk.codesign.seats import SeatSpace, space_of
from ropewalk.codesign.selection import JumpSelection, jointly, per_group
from ropewalk.device.pricer import pricer
from ropewalk.errors import InputError
from ropewalk.fabric.wiring import Wiring
from ropewalk.hardware.prices import price_list
from ropewalk.strategy import Strategy
from ropewalk.strategy.placement import Placement
from ropewalk.strategy.seating import Seating, strategy_of
from ropewalk.strategy.server import Server
from ropewalk.task.lower import lower
from ropewalk.task.lower.seat_pricer import SeatPricer
from ropewalk.task.step import Step
from ropewalk.training.checked import Expected, interval_of_step
from ropewalk.workload.source import open_workload
from ropewalk.workload.zoo.topoopt import JOBS

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class PricedQuestion:
    """A question with its layers priced."""

    question: PlanQuestion
    pricer: SeatPricer
    cost_source: str
    """Where the times of computations come from."""

    @cached_property
    def space(self) -> SeatSpace:
        allowed = self.question.allow
        return space_of(self.pricer, self.question.servers, tensor="tensor" in allowed, expert="expert" in allowed)

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(layer.name for layer in self.pricer.workload.layers)

    @property
    def site(self) -> Site:
        return site_of(self.question)

    def strategy(self, seating: Seating) -> Strategy:
        return strategy_of(seating, self.pricer.batch, self.pricer.micro_batches, self.pricer.optimiser)

    def step(self, seating: Seating) -> Step:
        strategy = self.strategy(seating)
        return lower(self.pricer.workload, strategy, Placement(strategy), self.pricer)

    def expected(self, seconds: float, seating: Seating) -> Expected:
        """The interval around a step, from the errors of predictions for runs like it."""
        cluster, workload, strategy = self.question.cluster, self.pricer.workload, self.strategy(seating)
        prices = pricer(cluster.device, self.question.precision).sustained(workload)
        return interval_of_step(seconds, workload, cluster.device, prices, strategy, gpus=cluster.gpus)

    def demands(self, seating: Seating) -> Demands:
        return priced_demands(self.pricer, seating)

    def wire(self, seating: Seating) -> Wiring:
        """The first wiring for what a strategy sends: the published split of ports, the rings with the fewest hops."""
        return self._found(find_topology, seating)

    def wirings(self, seating: Seating) -> tuple[Wiring, ...]:
        """Wirings for what a strategy sends that are worth timing, that of `wire` first; only one as published."""
        if self.question.selection == "paper":
            return (self.wire(seating),)
        return self._found(find_topologies, seating)

    def _found(self, find: Callable[..., Found], seating: Seating) -> Found:
        asked = self.question
        return find(
            self.demands(seating),
            degree=asked.degree,
            bandwidth=asked.bandwidth,
            duplex=asked.duplex,
            latency=asked.latency_s,
            selection=selection_of(asked),
            planes=not asked.single_panel,
        )

    def network(self, seating: Seating, wiring: Wiring) -> StepNetwork:
        """The wiring, its routes shared for what this strategy sends."""
        return wired_network(wiring, router_of(wiring, self.demands(seating)))

    def estimate(self, network: StepNetwork) -> SeatingEstimate:
        return SeatingEstimate(
            self.pricer, LinkLoads(network, self.question.servers), self.space.seats, self.question.servers
        )


def site_of(question: PlanQuestion) -> Site:
    """The servers that a question is about, and prices."""
    prices = price_list(question.prices)
    return Site(
        question.servers, question.degree, question.bandwidth, question.latency_s, question.seed, prices
    )  # fmt: skip


def selection_of(question: PlanQuestion) -> JumpSelection:
    """How rings are chosen; with the prime restriction where it was asked for."""
    if question.selection == "paper":
        return per_group(partial(paper_jumps, prime_only=question.prime_only))
    return partial(jointly, prime_only=question.prime_only)


def batch_of(question: PlanQuestion) -> int:
    """Samples of a whole step: what was given, otherwise what was published for each GPU, otherwise 1."""
    known = JOBS.get(question.workload_name)
    return question.batch or question.cluster.gpus * (known.batch if known else 1)


@lru_cache(maxsize=8)
def job_of(question: PlanQuestion, micro_batches: int = 1) -> PricedQuestion:
    """Read the model and price it."""
    workload = open_workload(question.workload_name, None, question.sequence)
    if workload.resize is None:
        raise InputError(
            f"{workload.name} ({workload.source}) is fixed at {workload.batch} samples, but a plan prices layers for "
            "many parts of the batch: give a model of the zoo, or a module as file.py:Name"
        )
    prices = pricer(question.device, question.precision).sustained(workload)
    server = Server(question.gpus_per_server, question.cluster.equal.nvlink_bandwidth, prices.device.memory_bytes)
    return PricedQuestion(
        question, SeatPricer(workload, prices, batch_of(question), server, micro_batches), prices.source
    )


@lru_cache(maxsize=1)
def search_on(
    question: PlanQuestion, micro_batches: int, where: str | tuple[Seating, Wiring]
) -> tuple[SeatSpace, SeatingEstimate]:
    """The space and the cost of a search: on a baseline, or on a wiring whose routes were made for a strategy.

    Only the last one is kept: on many servers it is large.
    """
    job = job_of(question, micro_batches)
    if not isinstance(where, str):
        return job.space, job.estimate(job.network(*where))
    network = BASELINES[where].make(job.site).network
    if network is None:
        raise InputError(f"{where} changes while a step runs: take over the strategy of another network")
    return job.space, job.estimate(network)
