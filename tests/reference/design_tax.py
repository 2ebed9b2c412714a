"""The bandwidth tax of a design, counted from demands and routes without a simulation.

A switch has a tax of 1. Where servers relay for each other a byte is carried once on every link of its way, so for
uniform all-to-all traffic the tax is the mean number of hops. Sums on rings of their own cables pay none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.demands import Demands
from ropewalk.codesign.routes import router_of
from ropewalk.codesign.traffic import traffic_of
from ropewalk.fabric.wiring import Wiring
from ropewalk.routing.routes import Routes
from ropewalk.sim.tax import tax


@dataclass(frozen=True, eq=False)
class Tax:
    """Bytes of a step, as asked for and as carried, of sums and of pairs."""

    sums_asked: float
    sums_carried: float
    pairs_asked: float
    pairs_carried: float
    link_bytes: NDArray[np.float64]
    """Bytes on every link of the fabric."""

    @property
    def tax(self) -> float:
        """Carried over asked for; 1 where nothing is asked for."""
        asked = self.sums_asked + self.pairs_asked
        return tax(self.sums_carried + self.pairs_carried, asked)

    @property
    def pair_tax(self) -> float:
        """Mean hops of model-parallel bytes; 1 where there are none."""
        return tax(self.pairs_carried, self.pairs_asked)

    @property
    def imbalance(self) -> float:
        """Bytes on the fullest link over the mean of all links; 1 where nothing is sent."""
        mean = float(self.link_bytes.mean()) if len(self.link_bytes) else 0.0
        return float(self.link_bytes.max()) / mean if mean > 0 else 1.0


def routes_of(wiring: Wiring, demands: Demands, **paths: int) -> Routes:
    """Routes for everything that a design sends in a step."""
    traffic = traffic_of(wiring, demands)
    return router_of(wiring, demands, **paths)(wiring.fabric(), traffic.source, traffic.destination)


def tax_of(wiring: Wiring, demands: Demands, routes: Routes) -> Tax:
    """What the demands cost on these routes; sums count with the wire bytes of their rings."""
    traffic = traffic_of(wiring, demands)
    row = routes.find(traffic.source, traffic.destination) if len(traffic.source) else np.zeros(0, np.int64)
    loads = [
        routes.link_bytes(row[part], traffic.size_bytes[part]) if part.any() else np.zeros(routes.fabric.links)
        for part in (traffic.for_sum, ~traffic.for_sum)
    ]
    carried = [float(load.sum()) for load in loads]
    asked = [float(traffic.size_bytes[part].sum()) for part in (traffic.for_sum, ~traffic.for_sum)]
    return Tax(asked[0], carried[0], asked[1], carried[1], loads[0] + loads[1])
