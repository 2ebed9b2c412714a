"""What a search for the best strategy found: the strategy, what it beat, and how much is left to gain."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.arrays import Floats
from ropewalk.planner.pricing import Priced
from ropewalk.planner.question import PlannerQuestion
from ropewalk.strategy.order import Order
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.strategy import Strategy
from ropewalk.training.answer import StepAnswer


@dataclass(frozen=True)
class Option:
    """A strategy with everything else that is decided, and the step time it was simulated to have."""

    strategy: Strategy
    placement: str
    """In which order ranks are laid over GPUs."""
    algorithm: str
    """Which collectives run: one name, or one for each purpose."""
    seconds: float
    memory_bytes: float

    def said(self) -> str:
        """The strategy in words, with what else is decided.

        >>> Option(Strategy(data=8, order=Order(fusion=0.0)), DEFAULT_ORDER, "tree", 1.0, 1e9).said()
        'dp 8, 1 micro-batch of 1, collectives tree, layer by layer'
        """
        more = [] if self.algorithm == "ring" else [f"collectives {self.algorithm}"]
        if self.placement != DEFAULT_ORDER:
            more.append(f"placed {self.placement}")
        if self.strategy.order != Order():
            more.append(self.strategy.order.said())
        if self.strategy.stages is not None:
            more.append("stages from layers " + ", ".join(map(str, self.strategy.stages)))
        return ", ".join([self.strategy.said(), *more])


@dataclass(frozen=True)
class Counts:
    """How large the space was and how far it was looked through."""

    possible: int
    """Strategies whose degrees fit the model, the GPUs and the batch."""
    runnable: int
    """Of these, what some framework can run as it stands."""
    fit: int
    """Of these, what fits into memory."""
    priced: int
    """Of these, how many have a bound: all."""
    replayed: int
    simulated: int


@dataclass(frozen=True)
class Rung:
    """One step of the ladder from the fastest conceivable step to the one that was found."""

    name: str
    seconds: float
    about: str


@dataclass(frozen=True)
class Bound:
    """What no strategy of the space can beat on this cluster, and why."""

    seconds: float
    """No strategy takes less, wherever the model is cut, whatever collectives run, in whatever order and placement."""
    uniform_s: float
    """No strategy takes less with the usual collectives, even cuts, usual buckets and placement."""
    proof: str
    """Which proof applies, in sentences."""
    ladder: tuple[Rung, ...]
    """From arithmetic alone to the bound: what each further fact adds."""
    complete: bool = False
    """Was every candidate whose uniform bound is below the best one simulated?"""

    def gap(self, seconds: float) -> float:
        """How much longer a step takes than the bound, as a part of the bound."""
        return seconds / self.seconds - 1


@dataclass(frozen=True)
class Strand:
    """What one strand is worth over the baseline, everything else left as it is there."""

    name: str
    about: str
    option: Option
    gain: float
    """Plain step time over that of the option: 1.2 is a fifth faster."""


@dataclass(frozen=True)
class NearestFit:
    """A candidate that does not fit into memory, and what it would need."""

    strategy: Strategy
    memory_bytes: float


@dataclass(frozen=True, eq=False)
class PlannerAnswer:
    """The best strategy that was found, and everything a table or a page says about it."""

    question: PlannerQuestion
    best: Option
    training: StepAnswer
    """The best one, simulated at the level asked for."""
    plain: Option
    """What Megatron-LM's defaults give."""
    plain_training: StepAnswer
    bound: Bound
    counts: Counts
    strands: tuple[Strand, ...]
    """Each alone over the baseline, then all together."""
    nearest: tuple[NearestFit, ...]
    """What was nearest to fitting, fullest last."""
    priced: Priced
    """All candidates that can be run, with bytes and bounds."""
    bounds_s: Floats
    """By candidate that fits: seconds that no simulation of it falls below."""
    simulated_s: Floats
    """By candidate: the simulated step time, not a number where it was not simulated."""
    frameworks: dict[str, str | None]
    """By framework: why it cannot run the best strategy, None where it can."""
    remarks: tuple[str, ...] = ()

    @property
    def capacity_bytes(self) -> float:
        return self.training.capacity_bytes
