"""A collective between all hosts of a fabric, as a run of a testbed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ropewalk import units
from ropewalk.fabric import Fabric
from ropewalk.fabric.expression import fabric
from ropewalk.lab.collective import collective_work
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.request import HASH, routes_by_name
from ropewalk.lab.suite.sizing import MEGABYTE, TRIED_BYTES, rough_run
from ropewalk.lab.suite.testbed import Ready
from ropewalk.routing import DEFAULT


@dataclass(frozen=True)
class CollectiveSetup:
    """A collective on a fabric whose links all run at one speed, but for some that are slower."""

    fabric: str
    collective: str
    bandwidth: str = "10Mbps"
    routing: str = DEFAULT
    segments: int = 1
    slowed: Mapping[str, float] = field(default_factory=dict)
    """Cables by the names of their ends, `h0-h1`, that run at this part of the speed."""

    @property
    def hashed(self) -> bool:
        return self.routing == HASH

    @property
    def unit(self) -> str:
        return "MB per rank"

    def ready(self, seconds: float, seed: int) -> Ready:
        network = LabNetwork(self.built())
        routing, routes = routes_by_name(network.fabric, self.routing, seed)
        question = LabQuestion(self.collective, size_bytes=TRIED_BYTES, segments=self.segments)
        tried = collective_work(network, routes, question)
        took = rough_run(network, tried.job.graph, tried.routes).makespan
        size = max(1, round(tried.details["size_bytes"] * seconds / took))
        work = collective_work(network, routes, replace(question, size_bytes=size))
        return Ready(network, routing, routes, work, work.details["size_bytes"] / MEGABYTE)

    def built(self) -> Fabric:
        """The fabric with its slow cables."""
        whole = fabric(self.fabric, bandwidth=units.bandwidth(self.bandwidth))
        if not self.slowed:
            return whole
        part = np.ones(whole.links)
        for cable, speed in self.slowed.items():
            ends = {tuple(cable.split("-")), tuple(reversed(cable.split("-")))}
            part[[tuple(whole.link_name(link).split("->")) in ends for link in range(whole.links)]] = speed
        return replace(whole, name=f"{whole.name} with slow links", bandwidth=whole.bandwidth * part, builder=None)
