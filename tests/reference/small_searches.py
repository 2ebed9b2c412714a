"""Small random worlds, and whether anything in their whole space is faster than an answer: for tests and benchmarks.

Every strand is on: degrees, ZeRO, recomputation, micro-batches, timetables, every cut, every placement, every bucket
size, every collective of every kind of group. A choice is simulated unless its replay, which is never above it, is no
shorter than the answer; collectives that are not chosen yet cost in it what the cheapest does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations

import numpy as np

from ropewalk.collectives.choice import collective_choice
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.device.pricer import pricer
from ropewalk.errors import InputError
from ropewalk.hardware import Given, read_cluster
from ropewalk.planner._replay_kernel import ReplayCosts
from ropewalk.planner.answer import Option, PlannerAnswer
from ropewalk.planner.best_first import PlannerSearch, best_first
from ropewalk.planner.channels import CHANNELS, Channel
from ropewalk.planner.enumerated import enumerate_space
from ropewalk.planner.pricing import StrategyPrices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.refine import BUCKETS, PURPOSES
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Space
from ropewalk.planner.study import Study
from ropewalk.planner.tailored import Tailor
from ropewalk.progress import silent
from ropewalk.strategy.frameworks import runnable
from ropewalk.strategy.placement import AXES, Placement
from ropewalk.training.network import NetworkUse, transport_of
from ropewalk.workload.source import open_workload

SHAPES = (("2x2", 1), ("2x2", None), ("4x1", None), ("1x4", None), ("2x4", 1))
UNIFORM_SHAPES = (("2x2", None), ("2x4", 1), ("4x1", None), ("3x2", 1))
NO_FASTER = 1 - 1e-5
"""The search passes over what is faster by a millionth, in each of a few rounds."""


def small_question(seed: int) -> PlannerQuestion:
    """A model, a cluster and a space of a few dozen strategies."""
    rng = np.random.default_rng(seed)
    shape, nics = SHAPES[seed % len(SHAPES)]
    cluster = read_cluster(shape, Given(nics=nics, nic_bandwidth=float(rng.choice([0.2e9, 1e9, 5e9]))))
    model = f"gpt:layers={int(rng.integers(2, 5))},hidden={int(rng.choice([256, 512]))},heads=4,vocabulary=2048"
    space = Space(
        server=cluster.servers[0].gpus, tensor=(1, 2) if seed % 2 else (1,), micro_batch=(1, 2), context=(1,),
        recompute=("none",), zero=(0, int(rng.integers(1, 4))),
        schedules=("1f1b", str(rng.choice(["interleaved", "gpipe", "zb-h1", "zb-v"]))),
    )  # fmt: skip
    return PlannerQuestion(model, cluster, cluster.gpus * int(rng.choice([1, 2])), 128, space=space)


@dataclass(eq=False)
class Exhaustive:
    """Everything that the space of an answer holds."""

    prices: StrategyPrices
    answer: PlannerAnswer
    within: float = NO_FASTER
    """What is simulated: all whose bound is below so many times the answer."""
    known: dict = field(default_factory=dict)
    """Costs of collectives by layout and purpose."""
    simulator: Simulator = field(init=False)
    bounded: int = 0
    simulated: int = 0

    def __post_init__(self) -> None:
        self.simulator = Simulator(self.answer.question)
        self.priced = self.answer.priced
        gradients = 4.0 * sum(layer.parameters() for layer in self.prices.workload.layers)
        self.sizes = (*(size for size in BUCKETS if size < gradients), max(BUCKETS))  # from then on all are together

    def faster(self) -> Iterator[Option]:
        """Options that take less than the answer."""
        for at in np.flatnonzero(self.priced.fits).tolist():
            strategy = self.priced.candidates.strategy(at)
            sizes = self.sizes if strategy.replicas > 1 and strategy.zero < 3 else (strategy.order.bucket_bytes,)
            for order in distinct_orders(strategy):
                for size in sizes:
                    yield from self._of(Tailor(self.prices, self.priced, at, order, "ring", size))

    def _of(self, tailor: Tailor) -> Iterator[Option]:
        layers = len(self.prices.workload.layers)
        every = np.array([(0, *cut) for cut in combinations(range(1, layers), tailor.pieces - 1)])
        costs = {purpose: self._costs(tailor, purpose) for purpose in PURPOSES}
        used = {purpose: found for purpose, found in costs.items() if found}
        fixed = self._alone(tailor, (Channel.SEND_ON, Channel.SEND_BACK), "ring")
        yield from self._choose(tailor, every, fixed, used, {})

    def _choose(self, tailor, cuts, fixed, left, chosen) -> Iterator[Option]:
        """Settle one purpose after the other, as long as something could be faster."""
        network = fixed.copy()
        for found in left.values():
            network += np.min(list(found.values()), axis=0)
        bounds = self._bounds(tailor, cuts, network)
        cuts = cuts[bounds < self.answer.best.seconds * self.within]
        if not len(cuts):
            return
        if left:
            purpose, *others = left
            for name, own in left[purpose].items():
                rest = {one: left[one] for one in others}
                yield from self._choose(tailor, cuts, fixed + own, rest, {**chosen, purpose: name})
            return
        algorithm = "ring"
        for purpose, name in chosen.items():
            algorithm = str(collective_choice(algorithm).having(purpose, name))
        exact = replace(tailor, algorithm=algorithm)
        try:
            bounds = exact.cut_as(cuts, np.zeros_like(cuts)).replay_s
        except InputError:
            return  # it has nothing for some group
        for cut in cuts[bounds < self.answer.best.seconds * self.within]:
            yield from self._simulated(exact, cut)

    def _simulated(self, tailor: Tailor, cut) -> Iterator[Option]:
        found = tailor.cut_as(cut[None], np.zeros((1, len(cut)), np.int64))
        strategy = tailor.strategy(found, 0)
        strategy = replace(strategy, order=replace(strategy.order, fusion=tailor.bucket_bytes))
        answers = runnable(strategy, self.prices.workload, algorithm=tailor.algorithm)
        if all(why is not None for why in answers.values()):
            return
        self.simulated += 1
        seconds = self.simulator.seconds(strategy, tailor.order, tailor.algorithm)
        assert found.replay_s[0] <= seconds * (1 + 1e-9), (strategy, tailor.order, tailor.algorithm)
        if seconds < self.answer.best.seconds * NO_FASTER:
            yield Option(strategy, tailor.order, tailor.algorithm, seconds, float(found.memory_bytes[0]))

    def _bounds(self, tailor: Tailor, cuts, costs):
        none = np.zeros(0, np.int64)
        tailor.__dict__["network"] = ReplayCosts(costs, np.zeros(2, np.int64), np.zeros(1, np.int64), none, np.zeros(0))
        self.bounded += len(cuts)
        return tailor.cut_as(cuts, np.zeros_like(cuts)).replay_s

    def _costs(self, tailor: Tailor, purpose: str):
        """What the channels of a purpose cost, by collective; none where it is not used."""
        layouts, which = self.priced.candidates.layouts
        layout = layouts[which[tailor.at]]._replace(order=tailor.order)
        if (layout, purpose) in self.known:
            return self.known[layout, purpose]
        channels = [one for one in PURPOSES[purpose] if one in self.prices.channels(layout)]
        found = self.known[layout, purpose] = {}
        for name, record in COLLECTIVES.items() if channels else ():
            if record.auto_up_to == 0:
                continue
            try:
                algorithm = str(collective_choice("ring").having(purpose, name))
                found[name] = self._alone(tailor, channels, algorithm)
            except InputError:
                continue  # it has nothing for some group
        return found

    def _alone(self, tailor: Tailor, channels, algorithm: str):
        layouts, which = self.priced.candidates.layouts
        layout = layouts[which[tailor.at]]._replace(order=tailor.order)
        there = [one for one in channels if one in self.prices.channels(layout)]
        costs = np.zeros((layout.pipeline, CHANNELS, 3))
        if there:
            costs[:, there] = self.prices.layout(layout, algorithm, there).seconds[:, there]
        return costs


def distinct_orders(strategy) -> list[str]:
    """Orders of ranks that put some rank elsewhere."""
    found = {Placement(strategy, "-".join(names)).grid.tobytes(): "-".join(names) for names in permutations(AXES)}
    return list(found.values())


def searched(question: PlannerQuestion, within: float = NO_FASTER) -> Exhaustive:
    """The answer to a question, with the whole space beside it."""
    study = Study(question, silent)
    return Exhaustive(study.prices, study.answer(), within)


def uniform_search(seed: int) -> tuple[PlannerSearch, np.ndarray]:
    """A search over degrees alone, and the simulated steps of everything that fits."""
    rng = np.random.default_rng(seed)
    shape, nics = UNIFORM_SHAPES[seed % len(UNIFORM_SHAPES)]
    cluster = read_cluster(shape, Given(nics=nics, nic_bandwidth=float(rng.choice([1.25e9, 12.5e9]))))
    layers, hidden = int(rng.integers(2, 7)), int(rng.choice([256, 512]))
    model = f"gpt:layers={layers},hidden={hidden},heads=4"
    workload = open_workload(model, 1, 128)
    batch = cluster.gpus * int(rng.choice([2, 4]))
    space = Space(
        server=cluster.servers[0].gpus, micro_batch=(1, 2), recompute=("none", "full"),
        zero=tuple(sorted(rng.choice(4, 2, replace=False).tolist())), schedules=("1f1b", "interleaved", "zb-h1"),
    )  # fmt: skip
    use = NetworkUse(transport=transport_of(cluster.device))
    prices = StrategyPrices(workload, pricer(cluster.device), cluster.fabric(), use)
    priced = prices.price(enumerate_space(space, workload, cluster.gpus, batch))
    simulator = Simulator(PlannerQuestion(model, cluster, batch, 128))

    def seconds(at: int) -> float:
        return simulator.seconds(priced.strategy(at, workload))

    found = best_first(priced.floor_s, priced.replay, seconds, most=10_000)
    return found, np.array([seconds(at) for at in np.flatnonzero(priced.fits).tolist()])
