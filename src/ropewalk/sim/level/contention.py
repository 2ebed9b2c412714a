"""Do queues build up? What hosts offer to each link at once, against what the link carries.

A host gives its flows equal turns. As long as what all hosts offer fits on every link, packets find their way as fluid
does, but for bursts: hosts may take turns in step and all send to the same receiver first, which costs some packets a
switch. Where more is offered than a link carries, a queue grows until senders are paused, slowed down or lose packets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.ragged import ranges
from ropewalk.routing import Routes
from ropewalk.sim.level.wire import WireFormat
from ropewalk.sim.packet.flows import opposite_links
from ropewalk.sim.trace import Trace
from ropewalk.task import Lockstep, TaskKind

NO_SHARE = 1e-9
INSTANTS = 128
"""Moments of a run at which the transfers under way are looked at."""


@dataclass(frozen=True)
class Contention:
    """What happens at the link that is offered the most."""

    overload: float
    """Offered to a link behind a switch, in units of what it carries. 1 or less: no switch's queue grows."""
    relay_overload: float
    """The same of links of hosts that relay. Nobody is paused or slowed down for those, but somebody waits."""
    acked_overload: float
    """Offered to any link after the first, acknowledgements of what goes the other way included."""
    link: int
    flows: int
    """That meet at the link."""
    lopsided: float
    """Of the paths of one transfer: how much faster one gets its share through than another. 1: all end together."""
    bursts: float
    """About the part of the time that flows meeting in step add: half a packet a node, of a message of m packets."""

    @property
    def queues_grow(self) -> bool:
        return self.overload > FULL

    @property
    def somebody_waits(self) -> bool:
        return self.queues_grow or self.relay_overload > FULL or self.acked_overload > FULL_WITH_ANSWERS


FULL = 1 + 1e-6
FULL_WITH_ANSWERS = 1.01
"""What answers cost is known less exactly: they come a round trip later."""
NONE = Contention(0.0, 0.0, 0.0, -1, 0, 1.0, 0.0)


def contention_of_rounds(rounds: Lockstep, routes: Routes, form: WireFormat) -> Contention:
    """The worst round of a collective, each looked at as if all of its transfers were under way together."""
    worst, opposite = NONE, opposite_links(routes.fabric)
    for arrows in rounds.arrows:
        pair = routes.find(arrows.src_host, arrows.dst_host)
        alike = np.zeros(len(pair), np.int64)
        worst = _worse(worst, _offered(routes, pair, arrows.size_bytes, alike, form, opposite))
    return worst


def contention_of_run(trace: Trace, form: WireFormat) -> Contention:
    """The worst of some moments of a flow-level run: those at which transfers start or end, or some of them."""
    graph = trace.graph
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    if not len(transfer):
        return NONE
    start, end = trace.start[transfer], trace.end[transfer]
    pair = trace.routes.rows_of(graph, transfer)
    size, urgency = graph.amount[transfer], np.unique(graph.priority[transfer], return_inverse=True)[1]
    worst, opposite = NONE, opposite_links(trace.routes.fabric)
    moments = np.unique(np.concatenate([start, end]))
    if len(moments) > INSTANTS:
        moments = np.unique(np.quantile(moments, np.linspace(0.0, 1.0, INSTANTS), method="nearest"))
    for moment in moments.tolist():
        active = (start <= moment) & (end > moment)
        under_way = (pair[active], size[active], urgency[active])
        worst = _worse(worst, _offered(trace.routes, *under_way, form, opposite))
    return worst


def _worse(one: Contention, other: Contention) -> Contention:
    """The more loaded link, and the longer bursts of either."""
    loaded = max(one, other, key=lambda found: found.overload)
    return Contention(
        loaded.overload, max(one.relay_overload, other.relay_overload), max(one.acked_overload, other.acked_overload),
        loaded.link, loaded.flows, max(one.lopsided, other.lopsided), max(one.bursts, other.bursts),
    )  # fmt: skip


def _offered(
    routes: Routes,
    pair: NDArray[np.int64],
    size_bytes: NDArray[np.float64],
    urgency: NDArray[np.int64],
    form: WireFormat,
    opposite: NDArray[np.int32],
) -> Contention:
    """Every host sends at the speed of its links, in equal turns; a pair with several paths is several flows.

    Flows of one urgency take turns with each other only: either of two urgencies may have the link for itself.
    """
    if not len(pair):
        return NONE
    fabric, bandwidth = routes.fabric, routes.fabric.bandwidth
    paths = np.diff(routes.path_start)[pair]
    path = ranges(routes.path_start[pair], paths)
    kept = routes.share[path] > NO_SHARE
    transfer = np.repeat(np.arange(len(pair)), paths)[kept]
    packets = (np.repeat(form.packets(size_bytes), paths) * routes.share[path])[kept]
    path = path[kept]
    hops = routes.hops[path]
    first = routes.link[routes.link_start[path]]
    link = routes.link[ranges(routes.link_start[path], hops)]
    later = np.ones(len(link), bool)
    later[np.cumsum(hops) - hops] = False  # on its first link a flow waits its turn, which is no surprise

    def load_of(rate: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(link, weights=np.repeat(rate, hops), minlength=fabric.links) / bandwidth

    _, whose, turns = np.unique(
        first * np.int64(len(pair)) + urgency[transfer], return_inverse=True, return_counts=True
    )
    rate = bandwidth[first] / turns[whose]
    load = load_of(rate)
    answers = np.where(opposite >= 0, np.minimum(load[opposite], 1.0), 0.0) * form.answer_share
    acked = load_of(rate * (1 - answers[first])) + answers
    of_hosts = fabric.link_src < fabric.hosts
    relayed = float(load[of_hosts].max(initial=0.0))  # what a host sends of its own never exceeds its link
    behind = np.where(of_hosts, 0.0, load)
    worst = int(np.argmax(behind))
    flows = np.bincount(link, minlength=fabric.links)
    meets = np.repeat(np.arange(len(path)), hops)[later & (flows[link] > 1)]
    return Contention(
        overload=float(behind[worst]),
        relay_overload=relayed,
        acked_overload=float(acked[link[later]].max(initial=0.0)),
        link=worst,
        flows=int(flows[worst]),
        lopsided=_lopsided(transfer, rate / routes.share[path]),
        bursts=float(((hops[meets] - 1) / (2 * np.maximum(packets[meets], 1))).max(initial=0.0)),
    )


def _lopsided(transfer: NDArray[np.int64], speed: NDArray[np.float64]) -> float:
    """How much faster than another a path brings its share, given the speed at which each would bring the whole."""
    begins = np.flatnonzero(np.diff(transfer, prepend=-1))
    return float((np.maximum.reduceat(speed, begins) / np.minimum.reduceat(speed, begins)).max())
