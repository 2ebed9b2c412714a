"""What the network of a cluster costs: its pieces counted in the fabric that is built, and priced by a list.

>>> from ropewalk.hardware.networks import on_network
>>> from ropewalk.hardware.read import read_cluster
>>> pod = read_cluster("dgx-h100:16")
>>> {name: round(network_price(on_network(pod, name)).total) for name in ("rails", "rail-only", "wire")}
{'rails': 986240, 'rail-only': 519296, 'wire': 308224}
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ropewalk import units
from ropewalk.device.device import unlimited
from ropewalk.fabric import IdealSwitch, ServerFabric
from ropewalk.hardware.cabling import cabling_of
from ropewalk.hardware.cluster import Cluster, Ports
from ropewalk.hardware.prices import PANEL_PORT, TREE_PORT, Materials, PriceList, price_list


@dataclass(frozen=True)
class PricedPart:
    """One line of a bill."""

    name: str
    count: int
    each: float
    """Dollars."""

    @property
    def total(self) -> float:
        return self.count * self.each


@dataclass(frozen=True)
class Price:
    """What a network costs, piece by piece."""

    prices: str
    """The price list."""
    parts: tuple[PricedPart, ...]
    switches: tuple[tuple[int, int], ...] = ()
    """(ports in use, how many such switches); none where no switches are built."""
    servers: float | None = None
    """Dollars for the servers themselves; None where the list does not have them."""
    note: str = ""
    """How something is priced that cannot be bought as it is."""

    @property
    def total(self) -> float:
        """Dollars for the network alone."""
        return sum(part.total for part in self.parts)

    @property
    def with_servers(self) -> float | None:
        """Dollars for network and servers; None where the list does not have the servers."""
        return None if self.servers is None else self.total + self.servers

    def as_json(self) -> dict[str, Any]:
        parts = [{"name": part.name, "count": part.count, "each": part.each} for part in self.parts]
        switches = [{"ports": ports, "count": count} for ports, count in self.switches]
        said = {"prices": self.prices, "network": self.total, "servers": self.servers, "parts": parts}
        return said | {"switches": switches} | ({"note": self.note} if self.note else {})


def network_price(cluster: Cluster, prices: PriceList | None = None) -> Price:
    """The bill of the network between the servers, complete: what has failed was paid for too.

    Every cable has a transceiver at each end; ports of a server are NICs. Ports that are to be wired end on patch
    panels. An ideal switch is priced as a three-tier tree of full bisection, which comes close to it.
    """
    listed = price_list() if prices is None else prices
    servers = _servers(cluster, listed)
    if isinstance(cluster.network, Ports):
        bought = _times(PANEL_PORT, sum(group.count * group.nics for group in cluster.servers))
        parts = _lines({cluster.servers[0].nic_bandwidth: bought}, listed)
        return Price(listed.name, parts, servers=servers)
    fabric = (replace(cluster, failed=()) if cluster.failed else cluster).fabric()
    cabling = cabling_of(fabric)
    made = fabric.builder.network if isinstance(fabric.builder, ServerFabric) else fabric.builder
    ideal = isinstance(made, IdealSwitch)
    by_rate: dict[float, Materials] = {}
    for rate in np.unique(cabling.bandwidth).tolist():
        count, ends = (column[cabling.bandwidth == rate] for column in (cabling.count, cabling.server_ends))
        cables, nics = int(count.sum()), int(count @ ends)
        own = Materials(nics=nics, switch_ports=2 * cables - nics, transceivers=2 * cables, fibres=cables)
        by_rate[rate] = _times(TREE_PORT, nics) if ideal else own
    note = "an ideal switch is priced as a three-tier full-bisection fat-tree" if ideal else ""
    switches = () if ideal else tuple(sorted(cabling.ports_of_switches().items()))
    return Price(listed.name, _lines(by_rate, listed), switches, servers, note)


def _times(pieces: Materials, count: int) -> Materials:
    return Materials(*(count * each for each in vars(pieces).values()))


def _lines(by_rate: dict[float, Materials], prices: PriceList) -> tuple[PricedPart, ...]:
    """A line for every piece; those whose price depends on the line rate say it."""
    lines: Counter[tuple[str, float]] = Counter()
    for rate, pieces in by_rate.items():
        for name, (count, each) in pieces.priced(prices, rate).items():
            rated = f"{name} of {units.show_bandwidth(rate)}" if name in _RATED else name
            lines[rated, each] += round(count)
    return tuple(PricedPart(name, count, each) for (name, each), count in lines.items())


_RATED = ("NICs", "switch ports", "transceivers")


def _servers(cluster: Cluster, prices: PriceList) -> float | None:
    known = [prices.servers.get(unlimited(group.device)) for group in cluster.servers]
    if any(price is None for price in known):
        return None
    return sum(group.count * (price or 0.0) for group, price in zip(cluster.servers, known, strict=True))
