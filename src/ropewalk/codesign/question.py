"""What somebody wants planned: a model, servers with ports, and how hard to search."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from ropewalk.errors import Findings, InputError, StrategyError
from ropewalk.hardware import Cluster, Given, GivenPorts, as_json, from_json, read_cluster

PUBLISHED = {
    "dlrm": "topoopt-dlrm-dedicated",
    "candle": "topoopt-candle-dedicated",
    "bert": "topoopt-bert-dedicated",
    "ncf": "topoopt-ncf-dedicated",
    "resnet50": "topoopt-resnet50-dedicated",
    "vgg16": "topoopt-vgg16-dedicated",
}
"""The six models of the published study by their short names: in a plan these mean its dedicated-cluster variants."""
LINK_LATENCY_S = 1e-6
"""Of a cable between ports, unless the cluster says it."""
SELECTIONS = ("best", "paper")
EXTENSIONS = ("tensor", "expert", "pipeline")


def published_servers(
    servers: int = 16,
    degree: int = 4,
    *,
    gpus_per_server: int = 4,
    device: str = "a100",
    bandwidth: float = 12.5e9,
    latency_s: float = 1e-6,
    duplex: bool = True,
    single_panel: bool = False,
    prices: str = "mixnet",
) -> Cluster:
    """Servers with ports to be wired, those of the published study (TopoOpt, NSDI 2023) unless said otherwise."""
    given = Given(device=device, nic_bandwidth=bandwidth, latency_s=latency_s)
    ports = GivenPorts(degree, duplex, single_panel, prices)
    return read_cluster(f"{servers}x{gpus_per_server}", replace(given, ports=ports))


@dataclass(frozen=True)
class PlanQuestion:
    """Everything that a plan depends on: the same question gives the same plan, byte for byte.

    >>> asked = PlanQuestion("dlrm", published_servers(16, degree=4))
    >>> asked.workload_name, asked.servers, asked.degree
    ('topoopt-dlrm-dedicated', 16, 4)
    """

    model: str
    """A short name of the published study (`PUBLISHED`), or anything that `open_workload` reads."""
    cluster: Cluster = field(default_factory=lambda: published_servers())
    """Equal servers with ports to be wired."""
    precision: str = "bf16"
    batch: int | None = None
    """Samples of a whole step; the published number for each GPU, or 1, unless given."""
    sequence: int | None = None
    prime_only: bool = False
    """Only consider jumps that are 1 or prime."""
    selection: str = "best"
    """`best`: jumps with the fewest hops that a search finds; `paper`: the published geometric rule."""
    allow: tuple[str, ...] = ()
    """Extensions of the published search space: `tensor`, `expert`, `pipeline`."""
    budget: int = 2000
    """Proposals per chain and round."""
    chains: int = 4
    rounds: int = 4
    """Maximum alternations of strategy and topology."""
    compare: tuple[str, ...] = ("ideal-switch", "fat-tree")
    seed: int = 0

    def __post_init__(self) -> None:
        findings = Findings(InputError, "plan")
        for name, least in (("servers", 2), ("budget", 1), ("chains", 1), ("rounds", 1), ("seed", 0)):
            if getattr(self, name) < least:
                findings.add(f"{name} is {getattr(self, name)}: give a whole number from {least} on")
        if (uneven := self.cluster.uneven(self.batch)) is not None:
            findings.add(uneven)
        if not findings and self.degree > self.servers - 1:
            findings.add(
                f"{self.degree} ports per server are more than the {self.servers - 1} other servers: "
                f"give a degree of at most {self.servers - 1}"
            )
        if self.duplex and not self.single_panel and self.servers % 2:
            findings.add(
                f"{self.servers} servers cannot be paired on a panel of duplex cables: give an even number of "
                "servers, simplex cables (--simplex), or one large panel for all ports (--single-panel)"
            )
        for given, known, what in (
            ((self.selection,), SELECTIONS, "selection"),
            (self.allow, EXTENSIONS, "extension"),
        ):
            for name in given:
                if name not in known:
                    findings.add(f"there is no {what} {name!r}: use {' or '.join(known)}")
        findings.raise_if_any()

    @property
    def workload_name(self) -> str:
        return PUBLISHED.get(self.model.lower(), self.model)

    @property
    def servers(self) -> int:
        return self.cluster.equal.count

    @property
    def gpus_per_server(self) -> int:
        return self.cluster.equal.gpus

    @property
    def device(self) -> str:
        return self.cluster.device

    @property
    def bandwidth(self) -> float:
        """Bytes/s of a port, one direction."""
        return self.cluster.equal.nic_bandwidth

    @property
    def latency_s(self) -> float:
        """Of a link; each round of an all-reduce pays it."""
        return LINK_LATENCY_S if self.cluster.latency_s is None else self.cluster.latency_s

    @property
    def degree(self) -> int:
        return self.cluster.ports.degree

    @property
    def duplex(self) -> bool:
        return self.cluster.ports.duplex

    @property
    def single_panel(self) -> bool:
        return self.cluster.ports.single_panel

    @property
    def prices(self) -> str:
        return self.cluster.ports.prices

    def as_json(self) -> dict[str, Any]:
        """Plain values, enough to ask again."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return plain | {"cluster": as_json(self.cluster)}

    @staticmethod
    def from_json(record: dict[str, Any]) -> PlanQuestion:
        known = {field.name for field in fields(PlanQuestion)}
        strange = sorted(set(record) - known)
        if strange or "model" not in record:
            what = f"has the unknown entry {strange[0]!r}" if strange else "names no model"
            raise StrategyError(f"the question of a plan {what}: use a plan.json that this version wrote")
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in record.items()
        }
        if isinstance(values.get("cluster"), dict):
            values["cluster"] = from_json(values["cluster"], "cluster of the question of a plan")
        try:
            return PlanQuestion(**values)
        except TypeError as problem:
            raise StrategyError(f"the question of a plan cannot be read ({problem}): write the plan again") from None
