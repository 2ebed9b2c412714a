"""How long a step takes on a network: the flow simulation that every answer of a plan goes back to.

Every server is one rank. Sums run as rings over their groups, all rings of a group at once, each round charged the
latency of its path; everything else that is under way shares the links with them, relayed bytes on every link of
their way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ropewalk.codesign.network import StepNetwork
from ropewalk.collectives.choice import AUTO, CollectiveChoice
from ropewalk.collectives.table import with_rings
from ropewalk.progress import Count
from ropewalk.sim import simulate
from ropewalk.sim.step import StepRun, StepStatistics, statistics
from ropewalk.task.auto import Chosen, TriedChoice, fastest
from ropewalk.task.estimate import of_purpose, purposes_of
from ropewalk.task.expand import Expansion, use_of
from ropewalk.task.kinds import Use
from ropewalk.task.step import Step

MADE_FOR_THE_NETWORK = ("forest",)
"""What is tried beside the rings of a network: trees reach its optimum, whatever its cables are."""


@dataclass(frozen=True, eq=False)
class TimedStep:
    """A step that ran on a network."""

    network: StepNetwork
    run: StepRun

    @property
    def seconds(self) -> float:
        return self.run.trace.makespan

    @cached_property
    def statistics(self) -> StepStatistics:
        return statistics(self.run)

    @property
    def tax(self) -> float:
        """Bytes carried by links over bytes asked for."""
        return self.run.trace.tax


def time_step(
    step: Step,
    network: StepNetwork,
    progress: Count | None = None,
    collectives: CollectiveChoice | None = None,
) -> TimedStep:
    """Run a step, rank r on server r; its collectives are the rings of the network unless chosen.

    >>> from ropewalk.codesign.network import one_ring
    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.task.step import Act, StepSketch
    >>> sketch = StepSketch(4)
    >>> _ = sketch.collective(Act.ALL_REDUCE, range(4), 1e9)
    >>> switch = StepNetwork("switch", IdealSwitch(4, 12.5e9).build(), shortest, one_ring)
    >>> round(time_step(sketch.step(), switch).seconds, 6)
    0.12
    """
    use = _use(step, network, collectives or CollectiveChoice())
    return _timed(step, network, Expansion.of(step, use), progress)


def fastest_collectives(step: Step, network: StepNetwork, rings_s: float | None = None) -> Chosen:
    """The rings of a network or trees along its cables, purpose by purpose, by simulation: never slower than rings.

    Trees are taken where every send of theirs goes over one cable: servers relay traffic by forwarding tables, which
    know pairs of servers and not trees. `rings_s` is the step on rings where it was simulated before.

    >>> from ropewalk.codesign.network import one_ring
    >>> from ropewalk.fabric import Torus
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.task.step import Act, StepSketch
    >>> sketch = StepSketch(9, ("compute", "sums"))
    >>> _ = sketch.collective(Act.ALL_REDUCE, range(9), 1e9)
    >>> torus = StepNetwork("torus", Torus((3, 3)).build(), shortest, one_ring)
    >>> str(fastest_collectives(sketch.step(), torus).choice)
    'sums=forest'
    """
    rings = CollectiveChoice()

    def seconds(choice: CollectiveChoice) -> float:
        if choice == rings and rings_s is not None:
            return rings_s
        expansion = Expansion.of(step, replace(use, choice=choice))
        if expansion.own_paths is not None and (expansion.own_paths.hops > 1).any():
            return inf  # servers would have to relay what their forwarding tables do not know
        return _timed(step, network, expansion).seconds

    # Behind switches no server has a cable to another, and rings keep every NIC busy.
    trees = () if network.fabric.switches else purposes_of_joined_groups(step, network)
    use = _use(step, network, CollectiveChoice("ring", tuple((purpose, AUTO) for purpose in trees)))
    if not trees:
        return Chosen(rings, taken := seconds(rings), (TriedChoice(str(rings), taken),))
    return fastest(step, use, seconds, MADE_FOR_THE_NETWORK)


def purposes_of_joined_groups(step: Step, network: StepNetwork) -> tuple[str, ...]:
    """Purposes whose groups all hang together by cables among their own members, so that nobody else has to relay."""
    fabric = network.fabric
    ends = fabric.link_src, fabric.link_dst
    cables = csr_array((np.ones(fabric.links), ends), (fabric.nodes, fabric.nodes))

    def is_joined(group: int) -> bool:
        members = np.asarray(step.groups[group], np.int64)
        pieces, _ = connected_components(cables[members][:, members], connection="strong")
        return bool(pieces == 1)

    groups = {purpose: np.unique(of_purpose(step, purpose).group).tolist() for purpose in purposes_of(step)}
    return tuple(purpose for purpose, own in groups.items() if all(map(is_joined, own)))


def _use(step: Step, network: StepNetwork, choice: CollectiveChoice) -> Use:
    table = with_rings(network.rings)
    return use_of(step, np.arange(step.ranks), network.fabric, choice, table, network.router)


def _timed(step: Step, network: StepNetwork, expansion: Expansion, progress: Count | None = None) -> TimedStep:
    routed, routes = expansion.routed(network.router)
    trace = simulate(routed.graph, routes, progress=progress)
    return TimedStep(network, StepRun(step, trace, expansion.operation_of_task))
