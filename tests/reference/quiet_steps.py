"""Lowered steps on a fabric where nothing is shared, and the times of their stages for the clock."""

import numpy as np

from ropewalk.fabric import FabricDraft
from ropewalk.routing import ROUTERS
from ropewalk.sim.flow.system import run_system, system_of
from ropewalk.strategy import KeptPrices, cut, shares_of
from ropewalk.strategy.memory import gradient_bytes
from ropewalk.task.expand import expand
from ropewalk.task.lower.roster import messages
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


def times_of_step(model, strategy, prices, bandwidth=1.0):
    """Times of every piece for the clock: prices, the largest message of every hand-over, rings of one bucket."""
    sized = model.at_batch(strategy.micro_batch)
    shares = shares_of(sized, strategy)
    pieces = cut(sized, strategy, shares, KeptPrices(prices))
    each = range(len(pieces.homes))
    views = [strategy.on_stages()[home] for home in pieces.homes]
    element, crossings = prices.precision.element_bytes, pieces.crossings(sized)

    def seconds(piece, price):
        layers = (shares[at].layer.operators for at in pieces.of(piece))
        return sum(price(tuple(op for op in layer if not isinstance(op, Exchange))) for layer in layers)

    def reduced(piece):
        ranks, wide = views[piece].replicas, gradient_bytes(strategy, element)
        size = wide * sum(shares[at].parameters for at in pieces.of(piece))
        return 2 * (ranks - 1) / ranks * size / bandwidth

    def handed(piece):
        if (piece + 1) % pieces.count == 0:
            return 0.0  # nothing goes from one copy of the model to the next
        source, target = views[piece], views[piece + 1]
        size = crossings[piece % pieces.count, piece % pieces.count + 1] * element / bandwidth
        if not strategy.parts:
            return size
        return size * messages(source.data, source.tensor, target.data, target.tensor)[2].max()

    late = np.array([seconds(piece, prices.weight) if strategy.splits_backward else 0.0 for piece in each])
    return stage_times(
        [seconds(piece, prices.forward) for piece in each],
        [seconds(piece, prices.backward) for piece in each] - late,
        late,
        [handed(piece) for piece in each[:-1]],
        all_reduce=[reduced(piece) for piece in each],
    )
