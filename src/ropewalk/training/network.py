"""How a step uses the network: which algorithms its collectives run, on which routes, at what cost beyond bytes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ropewalk.collectives.choice import collective_choice
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.collectives.nccl import Algorithm, Generation, Library, generation_of, library_for
from ropewalk.collectives.nccl.rates import RATES
from ropewalk.collectives.table import COLLECTIVES, with_rings
from ropewalk.device.pricer import device_of
from ropewalk.errors import Findings, GraphError
from ropewalk.fabric import Fabric
from ropewalk.hardware import Cluster
from ropewalk.plans import Designed
from ropewalk.progress import Count
from ropewalk.routing import ROUTERS, Router, router_for
from ropewalk.sim.level import LevelUse, run_at_level
from ropewalk.sim.step import StepRun
from ropewalk.task.expand import Expansion, use_of
from ropewalk.task.kinds import Made, Use
from ropewalk.task.passes.launched_once import launched_once
from ropewalk.task.passes.weave import hands_over
from ropewalk.task.plausibility import link_slips
from ropewalk.task.step import Step
from ropewalk.task.transport import Transport
from ropewalk.workload.zoo.stacks import Stack

_A100 = RATES[Generation.AMPERE]
assert _A100.latency is not None
NCCL_RINGS = Transport(
    start_up_s=_A100.latency.launch_s,
    round_inside_s=_A100.latency.hop_s,
    round_across_s=6e-6,
    efficiency_inside=_A100.rings,
    efficiency_across=0.87,
)
"""NCCL's rings as a single collective. Start-up and rounds are fitted to 77 published all-reduce times of 2 to 8 A100s,
1 MiB to 1 GiB (mean error 6 %; vTrain's nccl-tests tables). Across servers: 350 GB/s of the 400 GB/s that eight NICs of
400 Gbps have, as reported for 248 servers (nccl-tests issue 283); a round there is assumed."""


def transport_of(gpu: str) -> Transport:
    """What NCCL's rings cost between GPUs of this name: all else is as on A100s, the share of NVLink its own.

    >>> transport_of("h100").efficiency_inside > transport_of("a100").efficiency_inside
    True
    """
    return replace(NCCL_RINGS, efficiency_inside=RATES[generation_of(gpu)].rings)


MOST_RECORDED = 200_000
DEFAULT = "default"
DESIGNED = "designed"
"""What a network with routes of its own says where others name their router."""


@dataclass(frozen=True)
class NetworkUse:
    """How transfers and collectives cross a fabric."""

    routing: str = "default"
    algorithm: str = DEFAULT
    """`default`: what the stack of the model calls, rings where none is known."""
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
    library: Library | None = None
    """Who chooses collectives by size, where that is left to a library (`nccl`); None: not known yet."""

    def settled(self, gpu: str, cluster: Cluster) -> NetworkUse:
        """The same for this GPU in these servers; which collectives run may still be left to the stack."""
        # Costs that somebody gave are those of single collectives, and rounds that are written out are known ones.
        single = self.transport is not None or self.collectives != "fluid" or self.designed is not None
        return replace(
            self,
            algorithm="ring" if single and self.algorithm == DEFAULT else self.algorithm,
            transport=self.transport or replace(transport_of(gpu), mixer=self._adder_of(cluster)),
            library=self.library or library_for(cluster),
        )

    def _adder_of(self, cluster: Cluster) -> Mixer:
        """What reductions are added up by unless told: the GPU, beside what it sends.

        Bandwidths of NCCL are measured with all that its reductions add, so adding counts only where it would take
        longer than sending. Where rounds are written out it would come on top of them, which would count it twice.
        """
        if self.collectives != "fluid" or self.algorithm == "nccl":
            return FREE
        return Mixer(device_of(cluster.device).adds)

    def written_in(self, collectives: str, cluster: Cluster) -> NetworkUse:
        """The same with rounds that flow together, or that are written out; what adds up by default goes with it."""
        usual, other = self._adder_of(cluster), replace(self, collectives=collectives)
        if self.transport is None or self.transport.mixer != usual:
            return other
        return replace(other, transport=replace(self.transport, mixer=other._adder_of(cluster)))

    def run_by(self, stack: Stack | None) -> NetworkUse:
        """The same with the collectives that a stack calls, if they were left to it; rings without a stack."""
        return replace(self, algorithm=self.named(stack))

    def named(self, stack: Stack | None = None) -> str:
        """The collectives by name."""
        usual = "ring" if stack is None else stack.collectives
        return usual if self.algorithm == DEFAULT else self.algorithm

    def beside_packets(self, transport: Transport) -> Transport:
        """What collectives cost beyond their bytes; headers, where the level counts them itself, do not count twice."""
        if not self.level.knows_packets:
            return transport
        share, mixer = self.level.payload_share(), transport.mixer
        if self.collectives == "fluid":
            # There adders limit what arrives, headers and all; elsewhere they take their time once it is there.
            mixer = replace(mixer, payload=share)
        return replace(transport, efficiency_across=min(1.0, transport.efficiency_across / share), mixer=mixer)

    def library_beside_packets(self) -> Library | None:
        """The library that chooses, the same way."""
        if self.library is None or not self.level.knows_packets:
            return self.library
        rates = self.library.rates
        return replace(self.library, rates=replace(rates, nic=min(1.0, rates.nic / self.level.payload_share())))

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


def expand_on(
    step: Step, fabric: Fabric, use: NetworkUse, made: Made | None = None, least: Algorithm | None = None
) -> Expansion:
    """The tasks of a step; rank r is host r of the fabric. Schedules that were `made` for it already are used again.

    Where a library chooses by size, `least` has one of its algorithms run at its best, whatever the size.
    """
    choice = collective_choice(use.named())
    if choice.is_open:
        raise GraphError(f"algorithm {use.algorithm!r} leaves collectives open: name them")
    return expanded(
        step, replace(use_on(step, fabric, use), choice=choice, made={} if made is None else made, least=least)
    )


def use_on(step: Step, fabric: Fabric, use: NetworkUse) -> Use:
    """What the step is expanded with; which collectives it runs is still to be said."""
    findings = Findings(GraphError, fabric.name)
    for slip in link_slips(fabric):
        findings.add(slip)
    findings.raise_if_any()
    transport = use.beside_packets(use.transport or NCCL_RINGS)
    used = use_of(
        step,
        np.arange(step.ranks),
        fabric,
        table=COLLECTIVES if use.designed is None else with_rings(use.designed.wiring.ring_orders),
        router=use.router(fabric),
        transport=transport,
        mode=use.collectives,
    )
    # As in quick steps, every collective has the adder to itself, unless launches of gradients are under way together.
    return replace(used, library=use.library_beside_packets(), shares_adders=hands_over(step))


def expanded(step: Step, use: Use) -> Expansion:
    """The tasks of a step whose operations are launched as the step says."""
    return launched_once(Expansion.of(step, use), step)


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
