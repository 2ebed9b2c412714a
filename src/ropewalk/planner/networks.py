"""The best strategy on each of several networks, beside each other; with a target, on as few servers as reach it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ropewalk.engines import Engine
from ropewalk.errors import Findings, InputError, MemoryShortage, PlanError
from ropewalk.hardware import Cluster, on_network, resized
from ropewalk.hardware.bill import Price, network_price
from ropewalk.hardware.networks import OWN
from ropewalk.hardware.prices import DEFAULT_PRICES, price_list
from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.comparison import NetworkComparison, NetworkResult, compared, hosts_of
from ropewalk.planner.on_ports import planned
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.target import Reached, Target, fewest_servers, read_target, sizes_that_divide
from ropewalk.progress import Progress, silent
from ropewalk.training.answer import StepAnswer
from ropewalk.units import show_seconds
from ropewalk.workload.source import open_workload


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
    reached: Reached | None = None
    """How few servers reach the target, where there is one."""

    @property
    def training(self) -> StepAnswer:
        """The best one, simulated."""
        return self.planned.training


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


def answer_on_networks(
    question: NetworksQuestion, progress: Progress | None = None, engine: Engine | None = None
) -> NetworksAnswer:
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
            found.append(_planned(question.plan, name, cluster, target, tell, engine))
        except MemoryShortage:  # it is the same on every network
            raise
        except InputError as problem:  # what was planned on other networks stays
            refused = refused or problem
            missed.append(f"{name}: {problem}")
    if not found and (target is None or len(names) == 1):
        assert refused is not None
        raise refused
    if not found:
        raise PlanError(f"target {question.target} is not reached on any of {', '.join(names)}:\n" + "\n".join(missed))
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


def _planned(
    base: PlannerQuestion, name: str, cluster: Cluster, target: Target | None, say: Progress, engine: Engine | None
) -> OnNetwork:
    if target is None:
        return OnNetwork(name, cluster, planned(replace(base, cluster=cluster), say, engine))
    known: dict[int, OnNetwork] = {}

    def seconds_of(servers: int) -> float:
        say(0, None, f"planning for {servers} servers")
        smaller = on_network(resized(base.cluster, servers), name)
        known[servers] = OnNetwork(name, smaller, planned(replace(base, cluster=smaller), say, engine))
        return known[servers].training.statistics.step_time_s

    def limit_of(servers: int) -> str:
        bound = known[servers].planned.bound
        return f"no strategy on {servers} servers takes less than {show_seconds(bound.seconds)}"

    longest = target.step_seconds(_tokens_per_step(base))
    most = sum(group.count for group in cluster.servers)
    resized(base.cluster, most)  # refuses a cluster that has one size only
    reached = fewest_servers(
        sizes_that_divide(base.batch, most), seconds_of, longest, limit_of=limit_of, text=target.text
    )
    return replace(known[reached.servers], reached=reached)


def _tokens_per_step(base: PlannerQuestion) -> float:
    return float(base.batch * open_workload(base.model, None, base.sequence).sequence)


def _result(one: OnNetwork, price: Price) -> NetworkResult:
    found = one.training.statistics
    return NetworkResult(
        one.name, one.cluster, hosts_of(one.cluster), found.step_time_s,
        one.planned.question.batch / found.step_time_s, found.tokens_per_s, found.mfu, price,
        one.training.strategy.said(), one.planned.bound.seconds,
    )  # fmt: skip


def _to_target(comparison: NetworkComparison, found: list[OnNetwork], target: Target) -> NetworkComparison:
    """The same with the verdict of a target: the fewest servers, and of networks that need no more the cheapest."""
    servers = {one.name: one.reached.servers for one in found if one.reached is not None}
    said_servers = {name: f"{count} server{'s' * (count != 1)}" for name, count in servers.items()}
    rows = sorted(comparison.rows, key=lambda row: (servers[row.result.name], row.cost_ratio))
    best = rows[0].result
    said = (
        f"{_in_words(best.name)} reaches {target.text} with {said_servers[best.name]} ({best.hosts.gpus} GPUs), "
        f"{show_seconds(best.step_time_s)} per step, for ${best.price.total:,.0f} of network"
    )
    others = [
        f"{_in_words(row.result.name)} needs {said_servers[row.result.name]} and ${row.result.price.total:,.0f}"
        for row in rows[1:]
    ]
    verdict = "; ".join([said, *others])
    if best.name == OWN:
        verdict = verdict[0].upper() + verdict[1:]
    return replace(comparison, pick=best.name, verdict=f"{verdict}.")


def _in_words(name: str) -> str:
    return "the cluster's own network" if name == OWN else name
