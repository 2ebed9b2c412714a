"""Steps simulated by their gangs: many strategies of one model on one cluster, with the times of all ranks.

A full simulation writes every task of every rank. Here a step stays a gang, one rank per stage, and is simulated with
one task for each class of copies that nothing tells apart (`sim.flow.layout`). Times are those of the full simulation
at flow level to rounding, on every network; where nothing is symmetric it takes as long. What depends on the model, the
cluster or the layout alone is worked out once and kept.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from ropewalk.collectives.choice import CollectiveChoice, collective_choice
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.device.pricer import Pricer, pricer
from ropewalk.errors import GraphError, StrategyError
from ropewalk.fabric.interconnect import gpu_in
from ropewalk.sim.flow.gang import system_of_gang
from ropewalk.sim.flow.layout import GangLayout
from ropewalk.sim.flow.system import System, Times, run_system
from ropewalk.sim.flow.written_out import written_out
from ropewalk.sim.gang_run import GangRun
from ropewalk.sim.gang_step import GangReader
from ropewalk.sim.physics import check_system
from ropewalk.strategy import KeptPrices, Placement, Strategy
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.prices import Inside
from ropewalk.strategy.strategy import SERVER
from ropewalk.task.kinds import Made, Use
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.known import Known
from ropewalk.task.lower.lowering import Lowered
from ropewalk.task.lower.moves import STREAMS
from ropewalk.task.lower.one_of_each import Key, Kinds, kinds_of, with_related
from ropewalk.task.lower.roster import Roster
from ropewalk.task.step import Step
from ropewalk.training.inside import inside_of
from ropewalk.training.network import use_on
from ropewalk.training.question import TrainingQuestion
from ropewalk.training.seats import GroupChoices
from ropewalk.workload.source import open_workload
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo.stacks import Stack, stack_of


@dataclass(frozen=True, eq=False)
class QuickRun:
    """The run of a step by its gang."""

    strategy: Strategy
    gang: Gang
    layout: GangLayout
    system: System
    times: Times

    @property
    def step_time_s(self) -> float:
        return float(self.times.end.max(initial=0.0))


class QuickSteps:
    """Steps of one model on one cluster; the question says which, and how the network is used.

    >>> quick = QuickSteps(TrainingQuestion("gpt2", gpus=16, batch=64))
    >>> ring = quick.run(Strategy(data=16, micro_batch=4))
    >>> deep = quick.run(Strategy(data=8, pipeline=2, micro_batch=1, micro_batches=8))
    >>> ring.step_time_s < deep.step_time_s
    True
    """

    def __init__(self, question: TrainingQuestion) -> None:
        self.prices = _prices(question)
        gpu = gpu_in(self.prices.device.title) or self.prices.device.name
        self.question = replace(question, network=question.network.settled(gpu, question.place))
        self.network, self.fabric = self.question.network, self.question.fabric()
        self._known: dict[Inside | None, Known] = {}
        self._insides: dict[tuple[str, Stack], Inside | None] = {}
        self._seats: dict[Hashable, GroupChoices] = {}
        self._workloads: dict[int, Workload] = {}
        self._uses: dict[tuple[int, CollectiveChoice], Use] = {}
        self.made: Made = {}
        self.layouts: dict[Hashable, GangLayout] = {}
        if self.network.level.knows_packets or question.jitter or question.stragglers:
            raise GraphError("quick steps use flows of identical ranks: leave level, jitter and stragglers out")

    def run(self, strategy: Strategy, *, order: str | None = None, algorithm: str | None = None) -> QuickRun:
        """The step of a strategy; ranks laid out in this order, and these collectives, unless as the question says."""
        named = self._named(strategy, algorithm)
        made = self._lowered(strategy, order)
        gang = made.one_step()
        kinds = self._kinds(gang, made.roster, named)
        layout = self._layout(kinds.keys, made.roster, named)
        system = system_of_gang(gang, layout.numbers(kinds.keys)[kinds.of_operation], layout)
        run = QuickRun(strategy, gang, layout, system, run_system(system))
        check_system(system, run.times)
        return run

    def read(self, strategy: Strategy, *, order: str | None = None, algorithm: str | None = None) -> GangReader:
        """The same with every task of the gang kept, to be read rank by rank."""
        choice = self._choice(self._named(strategy, algorithm))
        made = self._lowered(strategy, order)
        gang = made.one_step()
        kinds = self._kinds(gang, made.roster, str(choice))
        written = written_out(kinds.keys, made.roster, lambda step: self._use(step, choice))
        layout = written.layout()
        system = system_of_gang(gang, kinds.of_operation, layout, join=False)
        times = run_system(system)
        check_system(system, times)
        return GangReader(GangRun(gang, kinds.of_operation, written, layout, system, times), made.flops)

    def _lowered(self, strategy: Strategy, order: str | None) -> Lowered:
        if not self.covers(strategy):
            raise StrategyError(
                "quick steps are single steps of ranks that are GPUs: simulate seats of servers, and gradients that "
                "reach into the next step, in full"
            )
        placement = Placement(strategy, order or self.question.order or DEFAULT_ORDER)
        workload = self.workload(strategy.micro_batch)
        known = self.known(placement.order, stack_of(workload))
        return Lowered(workload, strategy, placement, known, "stage", self.question.gpu_count)

    def known(self, order: str, stack: Stack) -> Known:
        """What strategies have in common whose ranks are laid out in this order."""
        laid = order, stack
        if laid not in self._insides:
            self._insides[laid] = inside_of(self.question.place, self.network, order, self.prices.device, stack)
        inside = self._insides[laid]
        if inside not in self._known:
            self._known[inside] = Known(KeptPrices(self.prices, inside))
        return self._known[inside]

    @staticmethod
    def covers(strategy: Strategy) -> bool:
        """Is it a single step of ranks that are GPUs?"""
        return strategy.grain != SERVER and not strategy.order.across_steps

    def workload(self, micro_batch: int) -> Workload:
        """The model with a micro-batch of this size."""
        if micro_batch not in self._workloads:
            model = self.question.model
            made = model.at_batch(micro_batch) if isinstance(model, Workload) else None
            self._workloads[micro_batch] = made or open_workload(str(model), micro_batch, self.question.sequence)
        return self._workloads[micro_batch]

    def _layout(self, keys: tuple[Key, ...], roster: Roster, algorithm: str) -> GangLayout:
        """The classes of these kinds of operations; they depend on who is where, not on how much there is to do."""
        choice = self._choice(algorithm)
        related = with_related(keys, choice)
        key = related, _where(roster), algorithm
        if key not in self.layouts:
            self.layouts[key] = written_out(related, roster, lambda step: self._use(step, choice)).layout()
        return self.layouts[key]

    def _named(self, strategy: Strategy, algorithm: str | None) -> str:
        """The collectives by name, also where they were left to the stack."""
        use = self.network if algorithm is None else replace(self.network, algorithm=algorithm)
        return use.named(stack_of(self.workload(strategy.micro_batch)))

    def _kinds(self, gang: Gang, roster: Roster, algorithm: str) -> Kinds:
        """The kinds of a gang; where a library chooses, by what it chooses for their sizes."""
        choice = self._choice(algorithm)
        by_library = {at for at, name in enumerate(STREAMS) if COLLECTIVES[choice.name_for(name)].chooses}
        if not by_library:
            return kinds_of(gang)
        where = _where(roster)
        if where not in self._seats:
            self._seats[where] = GroupChoices(roster, self.fabric, self.network.library_beside_packets())
        return kinds_of(gang, by_library, self._seats[where])

    @staticmethod
    def _choice(algorithm: str) -> CollectiveChoice:
        choice = collective_choice(algorithm)
        if choice.is_open:
            raise GraphError(f"algorithm {algorithm!r} leaves collectives open: name them")
        return choice

    def _use(self, step: Step, choice: CollectiveChoice) -> Use:
        """What the step is expanded with; collectives that are made for the network are made once."""
        key = step.ranks, choice
        if key not in self._uses:
            self._uses[key] = replace(
                use_on(step, self.fabric, self.network), choice=choice, made=self.made, shares_adders=False
            )
        return self._uses[key]


def _where(roster: Roster) -> Hashable:
    """Who is where."""
    grids = tuple((grid.shape, grid.tobytes()) for grid in roster.grids)
    return grids, roster.folded, roster.parts_of_columns


def _prices(question: TrainingQuestion) -> Pricer:
    prices, model = pricer(question.device, question.precision), question.model
    if prices.device.held_to is None:
        return prices  # nothing depends on the model, which may take long to open
    return prices.sustained(model if isinstance(model, Workload) else open_workload(model, None, question.sequence))
