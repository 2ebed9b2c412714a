"""A plan: everything that is decided about training a model on a cluster, and the time that was promised for it.

Every command that decides something writes one and every command reads it: which model on which cluster, how the
network is wired where it was designed, who computes what, which collectives run on which routes, in which order
gradients travel. A plan leaves nothing open, so the same plan has the same time whoever simulates it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ropewalk import __version__
from ropewalk.errors import Findings, InputError, PlanError
from ropewalk.fabric import Fabric
from ropewalk.fabric.fingerprint import Fingerprint, fingerprint
from ropewalk.fabric.wiring import Wiring
from ropewalk.hardware import Cluster, Ports
from ropewalk.routing import Router
from ropewalk.routing.listed import Path, router_listed, routes_listed
from ropewalk.routing.servers import between_servers
from ropewalk.sim.level import LevelUse
from ropewalk.strategy import Strategy
from ropewalk.strategy.strategy import SERVER
from ropewalk.task.transport import Transport


@dataclass(frozen=True)
class ModelUse:
    """What is trained."""

    name: str
    """What `open_workload` reads: a name of the zoo, `file.py:Class`, a file."""
    sequence: int | None = None
    """Tokens of a sample; the model's own unless given."""
    precision: str = "bf16"


@dataclass(frozen=True)
class Communication:
    """How a step uses the network."""

    routing: str = "default"
    """The name of a router; a designed network has routes of its own."""
    algorithm: str = "ring"
    """Which collectives run: one name, or one for each purpose, `data=forest,tensor=ring`."""
    collectives: str = "fluid"
    """`fluid`: all rounds of a collective at once; `rounds`: one after the other."""
    transport: Transport = field(default_factory=Transport)
    """What collectives and sends cost beyond their bytes."""
    seed: int = 0
    """Of hashed routing."""
    digest: str = ""
    """A fingerprint of what the groups run, to see whether a later run makes the same."""


@dataclass(frozen=True)
class Designed:
    """A network that was made for the plan: the cables between its servers and the routes over them."""

    wiring: Wiring
    routes: tuple[Path, ...]
    """From server to server."""

    def fabric(self) -> Fabric:
        """The network whose hosts are the servers."""
        return self.wiring.fabric()

    def between_ranks(self, cluster: Cluster, grain: str) -> Fabric:
        """The network whose hosts are the ranks: servers that act as one, or GPUs in servers."""
        return self.fabric() if grain == SERVER else cluster.wired(self.wiring)

    def router(self) -> Router:
        """Routes between ranks, whatever they are: what GPUs of a server send each other stays inside it."""
        return between_servers(router_listed(self.routes))


@dataclass(frozen=True)
class Prediction:
    """What a simulation of the plan promised."""

    step_time_s: float
    compute_s: float
    """Mean over ranks of the time in which they compute."""
    exposed_communication_s: float
    """Mean over ranks of the time in which they wait for the network."""
    memory_bytes: float
    """On the fullest GPU."""
    level: LevelUse = field(default_factory=LevelUse)
    """How finely the network was simulated."""
    detail: str = "auto"
    """How finely the step was written down."""
    costs: str = ""
    """Where the times of computations come from."""


@dataclass(frozen=True)
class Plan:
    """Everything decided; `prediction` is None before anybody simulated it."""

    model: ModelUse
    cluster: Cluster
    strategy: Strategy
    made_by: str = "simulate"
    """The command that decided."""
    placement: str | None = None
    """In which order uniform ranks are laid over GPUs, Megatron-LM's unless given."""
    communication: Communication = field(default_factory=Communication)
    designed: Designed | None = None
    """The network, where the cluster has ports to be wired."""
    made_for: Fingerprint | None = None
    """The fabric that was there when the plan was made: a file may have changed since."""
    prediction: Prediction | None = None
    study: dict[str, Any] = field(default_factory=dict)
    """What the command that decided wants to keep: its question, its baselines, its history."""
    version: str = __version__

    def fabric(self) -> Fabric:
        """The network between the ranks of the plan."""
        if self.designed is not None:
            return self.designed.between_ranks(self.cluster, self.strategy.grain)
        return self.cluster.fabric()

    def check(self) -> None:
        """Refuse a plan whose parts contradict each other, with all the reasons at once."""
        findings = Findings(PlanError, f"plan for {self.model.name}")
        for finding in (
            self._against_the_network() if self.designed is None else self._against_the_wiring(self.designed)
        ):
            findings.add(finding)
        findings.raise_if_any()

    def _against_the_network(self) -> Iterator[str]:
        if isinstance(self.cluster.network, Ports):
            yield "its cluster has ports to be wired, but no wiring: let `ropewalk plan` wire it, or name a network"
            return
        yield from self._against_the_gpus()
        changed = None if self.made_for is None else self.made_for.changed(fingerprint(self.cluster.fabric()))
        if changed is not None:
            yield f"the network {self.cluster.network} is not the one it was made for ({changed}): write the plan again"

    def _against_the_gpus(self) -> Iterator[str]:
        if self.strategy.ranks > self.cluster.gpus:
            yield (
                f"its strategy has {self.strategy.ranks} ranks, but its cluster {self.cluster.gpus} GPUs: lower a "
                "degree or add servers"
            )

    def _against_the_wiring(self, designed: Designed) -> Iterator[str]:
        servers = sum(group.count for group in self.cluster.servers)
        if designed.wiring.servers != servers:
            yield (
                f"its wiring connects {designed.wiring.servers} servers, but its cluster has {servers}: "
                "write the plan again for this cluster"
            )
        if self.strategy.grain != SERVER:
            yield from self._against_the_gpus()
        try:
            routes_listed(designed.fabric(), designed.routes)
        except InputError as problem:
            yield str(problem)
