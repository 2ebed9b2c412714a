"""What somebody wants to know: the best strategy for a model on a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from ropewalk.errors import Findings, PlanError
from ropewalk.fabric import Fabric
from ropewalk.hardware import Cluster
from ropewalk.planner.space import Space
from ropewalk.plans import Designed
from ropewalk.sim.level import LevelUse
from ropewalk.strategy.memory import OPTIMISER_BYTES
from ropewalk.training.network import DEFAULT, NetworkUse

EXTENSIONS = {"unrunnable": "strategies that no framework can run as is"}
"""What `allow` may add to the space."""
MOST_SAMPLES = 1_000_000_000
"""Of a step; nobody's is larger."""
MOST_SIMULATED = 200
"""Candidates that a search simulates at most, unless told otherwise."""


@dataclass(frozen=True)
class PlannerQuestion:
    """A model, a batch and a cluster with a network; the strategy is what is asked for."""

    model: str
    """What `open_workload` reads: a name of the zoo, `file.py:Class`, a file."""
    cluster: Cluster
    batch: int
    """Samples of a whole step."""
    sequence: int | None = None
    precision: str = "bf16"
    space: Space = field(default_factory=Space)
    allow: tuple[str, ...] = ()
    routing: str = "default"
    seed: int = 0
    level: LevelUse = field(default_factory=LevelUse)
    """How finely the winner is simulated; the search looks at flows."""
    most_simulated: int = MOST_SIMULATED
    designed: Designed | None = None
    """Cables and routes between the servers, where their ports have been wired."""

    def fabric(self) -> Fabric:
        """The network between the GPUs."""
        return self.cluster.fabric() if self.designed is None else self.cluster.wired(self.designed.wiring)

    def use(self, algorithm: str = DEFAULT) -> NetworkUse:
        """How a step uses the network, with these collectives."""
        return NetworkUse(self.routing, algorithm, seed=self.seed, designed=self.designed)

    def check(self) -> None:
        """Refuse what cannot be meant, all of it at once."""
        findings = Findings(PlanError, f"plan for {self.model}")
        if self.batch < 1:
            findings.add(f"a batch of {self.batch} samples: give 1 or more")
        if self.batch > MOST_SAMPLES:
            findings.add(f"a batch of {self.batch:,} samples is too large: give at most {MOST_SAMPLES:,}")
        if self.most_simulated < 1:
            findings.add(f"{self.most_simulated} simulations: give 1 or more")
        optimiser = self.space.usual.optimiser
        if optimiser not in OPTIMISER_BYTES:
            findings.add(f"there is no optimiser {optimiser!r}: use one of {', '.join(OPTIMISER_BYTES)}")
        for name in self.allow:
            if name not in EXTENSIONS:
                findings.add(f"there is nothing called {name!r} to allow: use {', '.join(EXTENSIONS)}")
        findings.raise_if_any()
        self.space.check()
