"""How a step uses the network: which algorithms its collectives run, on which routes, at what cost beyond bytes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ropewalk.collectives.choice import collective_choice
from ropewalk.collectives.table import COLLECTIVES, with_rings
from ropewalk.errors import Findings, GraphError
from ropewalk.fabric import Fabric
from ropewalk.plans import Designed
from ropewalk.progress import Count
from ropewalk.routing import ROUTERS, Router, router_for
from ropewalk.sim.level import LevelUse, run_at_level
from ropewalk.sim.step import StepRun
from ropewalk.task.expand import Expansion, use_of
from ropewalk.task.kinds import Made, Use
from ropewalk.task.passes.launched_once import launched_once
from ropewalk.task.plausibility import link_slips
from ropewalk.task.step import Step
from ropewalk.task.transport import Transport

NCCL_RINGS = Transport(
    start_up_s=43e-6,
    round_inside_s=1.83e-6,
    round_across_s=6e-6,
    efficiency_inside=0.71,
    efficiency_across=0.87,
)
"""NCCL's rings. Start-up, rounds and the part of NVLink inside a server are fitted to 77 published all-reduce times of
2 to 8 A100s, 1 MiB to 1 GiB (mean error 6 %; vTrain's nccl-tests tables). Across servers: 350 GB/s of the 400 GB/s that
eight NICs of 400 Gbps have, as reported for 248 servers (nccl-tests issue 283); a round there is assumed."""

HOPPER_RINGS = replace(NCCL_RINGS, efficiency_inside=0.817)
"""The same on NVLink 4: rings of eight H100s reach 367.5 of 450 GB/s (NCCL issue 1455). All else is as on A100s."""

TRANSPORTS: dict[str, Transport] = {"h100": HOPPER_RINGS, "h200": HOPPER_RINGS}
"""What rings cost by the GPU they run on; where a GPU has no line of its own, what they cost on A100s."""


def transport_of(gpu: str) -> Transport:
    """What NCCL's rings cost between GPUs of this name.

    >>> transport_of("h100").efficiency_inside > transport_of("a100").efficiency_inside
    True
    """
    return TRANSPORTS.get(gpu.lower(), NCCL_RINGS)


MOST_RECORDED = 200_000
DESIGNED = "designed"
"""What a network with routes of its own says where others name their router."""


@dataclass(frozen=True)
class NetworkUse:
    """How transfers and collectives cross a fabric."""

    routing: str = "default"
    algorithm: str = "ring"
    collectives: str = "fluid"
    """`fluid`: all rounds of a collective at once, their start-ups added up; `rounds`: every round written out."""
    transport: Transport | None = None
    """What collectives and sends cost beyond their bytes; None: what NCCL's rings cost on the GPU."""
    seed: int = 0
    symmetry: bool = False
    """Simulate one of each class of equal tasks: exact, and for steps, whose ranks differ, seldom worth finding."""
    record_rates: bool = False
    """Keep the rate of every transfer over time, while there are at most `MOST_RECORDED` tasks: all are simulated."""
    level: LevelUse = field(default_factory=LevelUse)
    """How finely the network is simulated."""
    designed: Designed | None = None
    """A network that was made for a plan: its rings and its routes take the place of `routing`."""

    def settled(self, gpu: str) -> NetworkUse:
        """The same with nothing left open, for this GPU."""
        return replace(self, transport=self.transport or transport_of(gpu))

    def beside_packets(self, transport: Transport) -> Transport:
        """What collectives cost beyond their bytes; headers, where the level counts them itself, do not count twice."""
        if not self.level.knows_packets:
            return transport
        return replace(transport, efficiency_across=min(1.0, transport.efficiency_across / self.level.payload_share()))

    def router_on(self, fabric: Fabric) -> str:
        """The name of the router, checked against the fabric."""
        if self.designed is not None:
            return DESIGNED
        return router_for(fabric, self.routing).name

    def router(self, fabric: Fabric) -> Router:
        """How pairs of hosts are routed."""
        if self.designed is not None:
            return self.designed.router()
        return ROUTERS[self.router_on(fabric)].make(self.seed)


def expand_on(step: Step, fabric: Fabric, use: NetworkUse, made: Made | None = None) -> Expansion:
    """The tasks of a step; rank r is host r of the fabric. Schedules that were `made` for it already are used again."""
    choice = collective_choice(use.algorithm)
    if choice.is_open:
        raise GraphError(f"algorithm {use.algorithm!r} leaves collectives open: settle them first, or name them")
    return expanded(step, replace(use_on(step, fabric, use), choice=choice, made={} if made is None else made))


def use_on(step: Step, fabric: Fabric, use: NetworkUse) -> Use:
    """What the step is expanded with; which collectives it runs is still to be said."""
    findings = Findings(GraphError, fabric.name)
    for slip in link_slips(fabric):
        findings.add(slip)
    findings.raise_if_any()
    transport = use.beside_packets(use.transport or NCCL_RINGS)
    return use_of(
        step,
        np.arange(step.ranks),
        fabric,
        table=COLLECTIVES if use.designed is None else with_rings(use.designed.wiring.ring_orders),
        router=use.router(fabric),
        transport=transport,
        mode=use.collectives,
    )


def expanded(step: Step, use: Use) -> Expansion:
    """The tasks of a step whose operations are launched as the step says."""
    return launched_once(Expansion.of(step, use), step, use.transport)


def run_on(step: Step, expansion: Expansion, fabric: Fabric, use: NetworkUse, progress: Count | None = None) -> StepRun:
    """Route what the step sends and run it."""
    routed, routes = expansion.routed(use.router(fabric))
    tasks = routed.graph
    record = use.record_rates and tasks.tasks <= MOST_RECORDED
    run = run_at_level(
        tasks, routes, use.level, routing=use.router_on(fabric), seed=use.seed, symmetry=use.symmetry,
        record_rates=record, progress=progress,
    )  # fmt: skip
    return StepRun(step, run.trace, expansion.operation_of_task, run if use.level.knows_packets else None)
