"""Simulate a strategy with everything that is decided beside it, on flows, once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from ropewalk.engines import Engine
from ropewalk.errors import InputError
from ropewalk.planner.answer import Option
from ropewalk.planner.question import PlannerQuestion
from ropewalk.progress import Progress
from ropewalk.sim.level import LevelUse
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.strategy import Strategy
from ropewalk.training import answer
from ropewalk.training.answer import StepAnswer
from ropewalk.training.network import DEFAULT
from ropewalk.training.question import TrainingQuestion
from ropewalk.training.quick import QuickSteps
from ropewalk.training.quick_answer import quick_answer

Key = tuple[Strategy, str, str]


@dataclass(eq=False)
class Simulator:
    """Step times of strategies for one question; each is simulated once."""

    question: PlannerQuestion
    known: dict[Key, float] = field(default_factory=dict)
    engine: Engine = field(default_factory=Engine)
    ahead: dict[Key, float] = field(default_factory=dict)
    """Times that workers found before anybody asked for them."""

    def __post_init__(self) -> None:
        self.quick = QuickSteps(self.asked(Strategy(), DEFAULT_ORDER, DEFAULT))

    def asked(self, strategy: Strategy, placement: str, algorithm: str) -> TrainingQuestion:
        """The question whose answer is the time of this strategy."""
        question = self.question
        return TrainingQuestion(
            question.model,
            question.cluster,
            sequence=question.sequence,
            decided=strategy,
            precision=question.precision,
            network=question.use(algorithm),
            order=None if placement == DEFAULT_ORDER else placement,
            detail="stage" if strategy.order.is_plain else "auto",
        )

    def seconds(self, strategy: Strategy, placement: str = DEFAULT_ORDER, algorithm: str = DEFAULT) -> float:
        """The simulated step time of a strategy."""
        key = strategy, placement, algorithm
        if key not in self.known:
            early = self.ahead.get(key)
            self.known[key] = self._run(key) if early is None else early
        return self.known[key]

    def _run(self, key: Key) -> float:
        strategy, placement, algorithm = key
        if self.quick.covers(strategy):
            return self.quick.run(strategy, order=placement, algorithm=algorithm).step_time_s
        return answer(self.asked(strategy, placement, algorithm)).statistics.step_time_s

    def prepare(self, keys: Iterable[Key]) -> None:
        """Have what may be asked for next simulated side by side, where there are workers for it."""
        if self.engine.workers == 1:
            return
        new = [key for key in dict.fromkeys(keys) if key not in self.known and key not in self.ahead]
        found = self.engine.map(partial(simulated_seconds, self.question), new)
        self.ahead.update({key: seconds for key, seconds in zip(new, found, strict=True) if seconds is not None})

    def training(self, option: Option, level: LevelUse, progress: Progress | None = None) -> StepAnswer:
        """The whole answer about an option, at any level."""
        return self.training_of(option.strategy, level, option.placement, option.algorithm, progress)

    def training_of(
        self,
        strategy: Strategy,
        level: LevelUse,
        placement: str = DEFAULT_ORDER,
        algorithm: str = DEFAULT,
        progress: Progress | None = None,
    ) -> StepAnswer:
        """The whole answer about a strategy, at any level; all its ranks are written out only for packets."""
        asked = self.asked(strategy, placement, algorithm)
        if not level.knows_packets and self.quick.covers(strategy):
            return quick_answer(self.quick, asked)
        return answer(replace(asked, network=replace(asked.network, level=level)), progress)


def simulated_seconds(question: PlannerQuestion, key: Key) -> float | None:
    """The step time of a strategy, wherever it is simulated; None for what cannot be, which is told where it is asked.

    A worker keeps what it knows of the last question.
    """
    try:
        return _simulator(question).seconds(*key)
    except InputError:
        return None


@lru_cache(maxsize=1)
def _simulator(question: PlannerQuestion) -> Simulator:
    return Simulator(question)
