"""What somebody wants planned: a model, servers with ports, and how hard to search."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from ropewalk.errors import Findings, InputError, StrategyError

PUBLISHED = {
    "dlrm": "topoopt-dlrm-dedicated",
    "candle": "topoopt-candle-dedicated",
    "bert": "topoopt-bert-dedicated",
    "ncf": "topoopt-ncf-dedicated",
    "resnet50": "topoopt-resnet50-dedicated",
    "vgg16": "topoopt-vgg16-dedicated",
}
"""The six models of the published study by their short names: in a plan these mean its dedicated-cluster variants."""
SELECTIONS = ("best", "paper")
EXTENSIONS = ("tensor", "expert", "pipeline")


@dataclass(frozen=True)
class PlanQuestion:
    """Everything that a plan depends on: the same question gives the same plan, byte for byte.

    >>> PlanQuestion("dlrm", servers=16).workload_name
    'topoopt-dlrm-dedicated'
    """

    model: str
    """A short name of the published study (`PUBLISHED`), or anything that `open_workload` reads."""
    servers: int = 16
    degree: int = 4
    bandwidth: float = 12.5e9
    """Bytes/s of a port, each way."""
    latency_s: float = 1e-6
    """Of a link; each round of a sum pays it."""
    gpus_per_server: int = 4
    device: str = "a100"
    precision: str = "tf32"
    batch: int | None = None
    """Samples of one GPU; the published number, or 1, unless given."""
    duplex: bool = True
    """A cable carries both ways and takes one port at each end; otherwise a port sends to one server and receives from
    another."""
    single_panel: bool = False
    """All ports end on one large panel, where any two can be joined; otherwise port i of every server is on panel i."""
    prime_only: bool = False
    """Only consider jumps that are 1 or prime."""
    selection: str = "best"
    """`best`: jumps with the fewest hops that a search finds; `paper`: the published geometric rule."""
    allow: tuple[str, ...] = ()
    """Extensions of the published search space: `tensor`, `expert`, `pipeline`."""
    budget: int = 2000
    """Proposals of one chain in one round."""
    chains: int = 4
    rounds: int = 4
    """Alternations of strategy and topology at most."""
    compare: tuple[str, ...] = ("ideal-switch", "fat-tree")
    prices: str = "mixnet"
    seed: int = 0

    def __post_init__(self) -> None:
        findings = Findings(InputError, "plan")
        for name, least in (("servers", 2), ("degree", 1), ("gpus_per_server", 1), ("budget", 1), ("chains", 1),
                            ("rounds", 1), ("seed", 0)):  # fmt: skip
            if getattr(self, name) < least:
                findings.add(f"{name.replace('_', ' ')} is {getattr(self, name)}: give a whole number from {least} on")
        if self.batch is not None and self.batch < 1:
            findings.add(f"a batch of {self.batch} samples a GPU does not exist: give 1 or more")
        if not (math.isfinite(self.bandwidth) and self.bandwidth > 0):
            findings.add(f"a port has {self.bandwidth:g} bytes/s: give a positive bandwidth such as 100Gbps")
        if not (math.isfinite(self.latency_s) and self.latency_s >= 0):
            findings.add(f"a link has a latency of {self.latency_s:g} s: give 0 or more, such as 1us")
        if not findings and self.degree > self.servers - 1:
            findings.add(
                f"{self.degree} ports a server are more than the {self.servers - 1} other servers: "
                f"give a degree of at most {self.servers - 1}"
            )
        if self.duplex and not self.single_panel and self.servers % 2:
            findings.add(
                f"{self.servers} servers cannot be joined in pairs on a panel of duplex cables: give an even number of "
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

    def as_json(self) -> dict[str, Any]:
        """Plain values, enough to ask again."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

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
        try:
            return PlanQuestion(**values)
        except TypeError as problem:
            raise StrategyError(f"the question of a plan cannot be read ({problem}): write it anew") from None
