"""Lowered steps on a fabric where nothing is shared, and the times of their stages for the clock."""

import numpy as np

from ropewalk.fabric import FabricDraft
from ropewalk.routing import ROUTERS
from ropewalk.sim.flow.system import run_system, system_of
from ropewalk.strategy import PriceList, cut, shares_of
from ropewalk.strategy.memory import gradient_bytes
from ropewalk.task.expand import expand
from ropewalk.task.step import Act
from ropewalk.timetable.clock import stage_times
from ropewalk.workload.exchange import Exchange


def wired(hosts, bandwidth=1.0):
    """A link of its own from every host to every other."""
    draft = FabricDraft("pairs")
    draft.add_hosts([f"h{number}" for number in range(hosts)])
    src, dst = np.nonzero(~np.eye(hosts, dtype=bool))
    draft.add_links(src, dst, np.full(len(src), bandwidth), duplex=False)
    return draft.freeze()


def simulated(step, bandwidth=1.0):
    """Seconds of a step with ideal transport on private links."""
    fabric = wired(step.ranks, bandwidth)
    expanded = expand(step, range(step.ranks), fabric)
    routes = ROUTERS["shortest"].make(0)(fabric, *expanded.pairs())
    return float(run_system(system_of(expanded.graph, routes)).end.max())


def times_of_step(step, model, strategy, prices, bandwidth=1.0):
    """Times of every piece: what prices say, sends as the step has them, all-reduces of one bucket in a ring."""
    shares = shares_of(model, strategy)
    pieces = cut(model, strategy, shares, PriceList(prices))

    def seconds(piece, price):
        layers = (shares[at].layer.operators for at in pieces.of(piece))
        return sum(price(tuple(op for op in layer if not isinstance(op, Exchange))) for layer in layers)

    def reduced(piece):
        ranks, wide = strategy.replicas, gradient_bytes(strategy, prices.precision.element_bytes)
        size = wide * sum(shares[at].parameters for at in pieces.of(piece))
        return 2 * (ranks - 1) / ranks * size / bandwidth

    each = range(pieces.count)
    (sent,) = np.unique(step.amount[step.act == Act.SEND])
    late = np.array([seconds(piece, prices.weight) if strategy.splits_backward else 0.0 for piece in each])
    return stage_times(
        [seconds(piece, prices.forward) for piece in each],
        [seconds(piece, prices.backward) for piece in each] - late,
        late,
        sent / bandwidth,
        all_reduce=[reduced(piece) for piece in each],
    )
