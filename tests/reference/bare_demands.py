"""What a step asks of the network, where nothing has a price: bytes need none."""

from __future__ import annotations

from types import SimpleNamespace

from ropewalk.codesign.demand_of import priced_demands
from ropewalk.codesign.demands import Demands
from ropewalk.strategy.seating import Seating
from ropewalk.task.lower.seat_pricer import SeatPricer
from ropewalk.workload.workload import Workload


def demands_of(workload: Workload, seating: Seating, element_bytes: float, batch: int) -> Demands:
    """What a step of `batch` samples in all sends; gradients are as wide as activations."""
    nothing = {name: lambda *_: 0.0 for name in ("forward", "backward", "weight", "update")}
    prices = SimpleNamespace(precision=SimpleNamespace(element_bytes=element_bytes), **nothing)
    return priced_demands(SeatPricer(workload, prices, batch), seating)
