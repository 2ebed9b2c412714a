"""How long a step takes on a network: the flow simulation that every answer of a plan goes back to.

Every server is one rank. Sums run as rings over their groups, all rings of a group at once, each round charged the
latency of its path; everything else that is under way shares the links with them, relayed bytes on every link of
their way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ropewalk.codesign.network import StepNetwork
from ropewalk.collective.table import with_rings
from ropewalk.progress import Count
from ropewalk.sim import simulate
from ropewalk.sim.step import StepRun, StepStatistics, statistics
from ropewalk.task.expand import expand
from ropewalk.task.step import Step


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


def time_step(step: Step, network: StepNetwork, progress: Count | None = None) -> TimedStep:
    """Run a step, rank r on server r.

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
    expansion = expand(step, np.arange(step.ranks), network.fabric, table=with_rings(network.rings))
    routed, routes = expansion.routed(network.router)
    trace = simulate(routed.graph, routes, progress=progress)
    return TimedStep(network, StepRun(step, trace, expansion.operation_of_task))
