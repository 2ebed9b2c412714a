"""The best strategy on each of several networks, beside each other; with a target, on as few servers as reach it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ropewalk.errors import Findings, InputError, MemoryShortage, PlanError
from ropewalk.hardware import Cluster, Ports, on_network, resized
from ropewalk.hardware.bill import Price, network_price
from ropewalk.hardware.networks import OWN
from ropewalk.hardware.prices import DEFAULT_PRICES, price_list
from ropewalk.planner.answer import Option, PlannerAnswer
from ropewalk.planner.comparison import NetworkComparison, NetworkResult, compared, hosts_of
from ropewalk.planner.on_ports import best_wired, ideal_for
from ropewalk.planner.planned import plan_of
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.study import answer
from ropewalk.planner.target import Reached, Target, fewest_servers, read_target, sizes_that_divide
from ropewalk.plans import Plan
from ropewalk.progress import Progress, silent
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.training.answer import StepAnswer
from ropewalk.training.planned import plan_of as plan_of_training
from ropewalk.units import show_seconds
from ropewalk.workload.source import open_workload

ON_IDEAL = (
    "ports were wired for the strategies with the lowest bounds; candidates, strands, the plain choice and the bound "
    "are those of an ideal switch in the place of the wiring, on which every server sends what all its ports do"
)
"""What is known where ports are wired."""


@dataclass(frozen=True)
class NetworksQuestion:
    """A question that is asked on several networks of the same servers."""

    plan: PlannerQuestion
    """Its cluster has the servers; with a target, the most that there are."""
    networks: tuple[str, ...] = (OWN,)
    prices: str = DEFAULT_PRICES
    target: str | None = None
    """The longest step (`30s`) or the fewest tokens (`1e12tokens/30days`) that will do."""


@dataclass(frozen=True, eq=False)
class OnNetwork:
    """The best strategy on one network."""

    name: str
    cluster: Cluster
    planned: PlannerAnswer
    """Where ports are wired, on an ideal switch in the place of the wiring."""
    training: StepAnswer
    reached: Reached | None = None
    """How few servers reach the target, where there is one."""

    def shown(self) -> PlannerAnswer:
        """The answer on this network; where ports were wired, its best step is the one on the wiring."""
        if self.training is self.planned.training:
            return self.planned
        made = self.training
        seconds, algorithm = made.statistics.step_time_s, made.question.network.algorithm
        best = Option(made.strategy, DEFAULT_ORDER, algorithm, seconds, made.memory.most)
        question, remarks = replace(self.planned.question, cluster=self.cluster), (*self.planned.remarks, ON_IDEAL)
        return replace(self.planned, question=question, best=best, training=made, remarks=remarks)

    def plan(self) -> Plan:
        """Everything decided; where ports were wired, with cables and routes."""
        designed = self.training.question.network.designed is not None
        return plan_of_training(self.training) if designed else plan_of(self.planned)


@dataclass(frozen=True, eq=False)
class NetworksAnswer:
    """What every network gives, and which to take."""

    question: NetworksQuestion
    found: tuple[OnNetwork, ...]
    comparison: NetworkComparison
    missed: tuple[str, ...] = ()
    """Networks that were left out, and why: they do not reach the target, or their ports cannot be wired."""

    @property
    def best(self) -> OnNetwork:
        """The one to take."""
        return next(one for one in self.found if one.name == self.comparison.pick)

    def as_json(self) -> dict[str, Any]:
        reached = {one.name: one.reached.as_json() for one in self.found if one.reached is not None}
        said = {"target": self.question.target, "reached": reached} if reached else {}
        return self.comparison.as_json() | said | {"left_out": list(self.missed)}


def answer_on_networks(question: NetworksQuestion, progress: Progress | None = None) -> NetworksAnswer:
    """Plan on every network; what does not fit the servers is refused before anything is searched."""
    say, prices = progress or silent, price_list(question.prices)
    names = tuple(dict.fromkeys(question.networks))
    findings = Findings(PlanError, f"plan for {question.plan.model}")
    clusters = dict(_clusters(question.plan.cluster, names, findings))
    findings.raise_if_any()
    target = None if question.target is None else read_target(question.target)
    found, missed, refused = [], [], None
    for name, cluster in clusters.items():
        tell = _named(say, name) if len(names) > 1 else say
        try:
            found.append(_planned(question.plan, name, cluster, target, tell))
        except MemoryShortage:  # it is the same on every network
            raise
        except InputError as problem:  # what was planned on other networks stays
            refused = refused or problem
            missed.append(f"{name}: {problem}")
    if not found and (target is None or len(names) == 1):
        assert refused is not None
        raise refused
    if not found:
        raise PlanError(f"target {question.target} is reached on none of {', '.join(names)}:\n" + "\n".join(missed))
    results = [_result(one, network_price(one.cluster, prices)) for one in found]
    comparison = compared(results)
    if target is not None:
        comparison = _to_target(comparison, found, target)
    return NetworksAnswer(question, tuple(found), comparison, tuple(missed))


def _clusters(base: Cluster, names: tuple[str, ...], findings: Findings) -> list[tuple[str, Cluster]]:
    made = []
    for name in names:
        try:
            made.append((name, on_network(base, name)))
        except InputError as problem:
            findings.add(str(problem))
    return made


def _named(say: Progress, name: str) -> Progress:
    return lambda done, total, now: say(done, total, f"{name}: {now}")


def _planned(base: PlannerQuestion, name: str, cluster: Cluster, target: Target | None, say: Progress) -> OnNetwork:
    if target is None:
        return _on(replace(base, cluster=cluster), name, say)
    known: dict[int, OnNetwork] = {}

    def seconds_of(servers: int) -> float:
        say(0, None, f"planning for {servers} servers")
        smaller = on_network(resized(base.cluster, servers), name)
        known[servers] = _on(replace(base, cluster=smaller), name, say)
        return known[servers].training.statistics.step_time_s

    def limit_of(servers: int) -> str:
        bound = known[servers].planned.bound
        return f"no strategy on {servers} servers takes less than {show_seconds(bound.seconds)} ({bound.proof})"

    longest = target.step_seconds(_tokens_per_step(base))
    most = sum(group.count for group in cluster.servers)
    resized(base.cluster, most)  # refuses a cluster that has one size only
    reached = fewest_servers(
        sizes_that_divide(base.batch, most), seconds_of, longest, limit_of=limit_of, text=target.text
    )
    return replace(known[reached.servers], reached=reached)


def _tokens_per_step(base: PlannerQuestion) -> float:
    return float(base.batch * open_workload(base.model, 1, base.sequence).sequence)


def _on(question: PlannerQuestion, name: str, say: Progress) -> OnNetwork:
    """The best strategy on one network, which is simulated or wired first."""
    if not isinstance(question.cluster.network, Ports):
        planned = answer(question, say)
        return OnNetwork(name, question.cluster, planned, planned.training)
    planned = answer(replace(question, cluster=ideal_for(question.cluster)), say)
    tell: Callable[[str], None] = lambda now: say(0, None, now)  # noqa: E731
    return OnNetwork(name, question.cluster, planned, best_wired(question, planned, tell))


def _result(one: OnNetwork, price: Price) -> NetworkResult:
    found = one.training.statistics
    return NetworkResult(
        one.name, one.cluster, hosts_of(one.cluster), found.step_time_s,
        one.planned.question.batch / found.step_time_s, found.tokens_per_s, found.mfu, price,
        one.training.strategy.said(), None if isinstance(one.cluster.network, Ports) else one.planned.bound.seconds,
    )  # fmt: skip


def _to_target(comparison: NetworkComparison, found: list[OnNetwork], target: Target) -> NetworkComparison:
    """The same with the verdict of a target: the fewest servers, and of networks that need no more the cheapest."""
    servers = {one.name: one.reached.servers for one in found if one.reached is not None}
    rows = sorted(comparison.rows, key=lambda row: (servers[row.result.name], row.cost_ratio))
    best = rows[0].result
    said = (
        f"{best.name} reaches {target.text} with {servers[best.name]} servers ({best.hosts.gpus} GPUs), "
        f"{show_seconds(best.step_time_s)} per step, for ${best.price.total:,.0f} of network"
    )
    others = [
        f"{row.result.name} needs {servers[row.result.name]} servers and ${row.result.price.total:,.0f}"
        for row in rows[1:]
    ]
    return replace(comparison, pick=best.name, verdict=f"{'; '.join([said, *others])}.")
