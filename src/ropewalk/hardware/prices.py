"""Price lists as data: what pieces of networks cost, the pieces behind every port, and bandwidth for equal money.

Prices are known at a few line rates. Between two of them the price of a piece is interpolated; above the highest a port
is several of the highest; below the lowest a piece costs its part of the lowest in proportion, while fibre stays fibre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ropewalk.documents import read_text
from ropewalk.documents.from_toml import packaged_toml, parse_toml
from ropewalk.errors import Findings, InputError

BITS = 8e-9
"""Gbps in a byte per second."""
DEFAULT_PRICES = "mixnet"
FINEST = 1e-9
"""Bandwidth for equal money is found to this part of itself."""


@dataclass(frozen=True)
class PortPrice:
    """What one end of a link costs at one line rate."""

    nic: float
    transceiver: float
    switch_port: float


@dataclass(frozen=True)
class PriceList:
    """Dollars per piece."""

    name: str
    source: str
    gbps: tuple[float, ...]
    """Line rates at which prices are known, ascending."""
    pieces: tuple[PortPrice, ...]
    patch_panel_port: float
    ocs_port: float
    second_panel_switch: float
    fibre: float
    """One fibre of mean length."""
    servers: dict[str, float] = field(default_factory=dict, hash=False)
    """Whole servers by their GPU, without NICs, where the list has them."""

    def at(self, bandwidth: float) -> PortPrice:
        """The pieces of a link of this many bytes/s."""
        rate = bandwidth * BITS
        if not rate > 0:
            raise InputError(f"a link of {rate:g} Gbps has no price: give a bandwidth above 0, such as 100Gbps")
        top, bottom = self.gbps[-1], self.gbps[0]
        factor = rate / top if rate > top else rate / bottom if rate < bottom else 1.0
        known = min(max(rate, bottom), top)
        columns = zip(*((piece.nic, piece.transceiver, piece.switch_port) for piece in self.pieces), strict=True)
        return PortPrice(*(factor * float(np.interp(known, self.gbps, column)) for column in columns))


@dataclass(frozen=True)
class Materials:
    """How many pieces of one line rate something takes: a port of a server, or a whole network.

    >>> round(4 * PANEL_PORT.cost(price_list(), 12.5e9))
    4032
    >>> [round(TREE_PORT.cost(price_list(), gbps / 8 * 1e9)) for gbps in (100, 200, 400)]
    [2638, 4833, 11353]
    """

    nics: float = 0.0
    switch_ports: float = 0.0
    transceivers: float = 0.0
    fibres: float = 0.0
    patch_panel_ports: float = 0.0
    ocs_ports: float = 0.0
    second_panel_switches: float = 0.0

    def priced(self, prices: PriceList, bandwidth: float) -> dict[str, tuple[float, float]]:
        """Of every piece that there is, how many and what one costs, at this many bytes/s."""
        piece = prices.at(bandwidth)
        each = {
            "NICs": (self.nics, piece.nic),
            "switch ports": (self.switch_ports, piece.switch_port),
            "transceivers": (self.transceivers, piece.transceiver),
            "fibres": (self.fibres, prices.fibre),
            "patch panel ports": (self.patch_panel_ports, prices.patch_panel_port),
            "OCS ports": (self.ocs_ports, prices.ocs_port),
            "1x2 switches": (self.second_panel_switches, prices.second_panel_switch),
        }
        return {name: (count, price) for name, (count, price) in each.items() if count}

    def cost(self, prices: PriceList, bandwidth: float) -> float:
        """Dollars."""
        return sum(count * price for count, price in self.priced(prices, bandwidth).values())


TREE_PORT = Materials(nics=1, switch_ports=5, transceivers=6, fibres=3)
"""A port on a three-tier tree of full bisection."""
HALF_TREE_PORT = Materials(nics=1, switch_ports=3, transceivers=4, fibres=2)
"""The same where half of the uplinks is left out: half of all above the first switch."""
PANEL_PORT = Materials(nics=1, transceivers=1, fibres=1, patch_panel_ports=1)
"""A port on a patch panel."""
SECOND_PANEL_PORT = Materials(nics=1, transceivers=1, fibres=2, patch_panel_ports=2, second_panel_switches=1)
"""The same with a second panel beside the first, and a 1x2 switch to change over."""
OCS_PORT = Materials(nics=1, transceivers=1, fibres=1, ocs_ports=1)
"""A port on an optical circuit switch."""
STATIC_PORT = Materials(nics=1, transceivers=1, fibres=0.5)
"""A port joined to another by a fibre for good: no panel, and one fibre for two ports."""


def bandwidth_for(cost_of: Callable[[float], float], dollars: float) -> float:
    """The bytes/s at which a network costs this much; `cost_of` grows with the bandwidth.

    >>> prices = price_list()
    >>> paid = 4 * PANEL_PORT.cost(prices, 12.5e9)
    >>> round(bandwidth_for(lambda speed: TREE_PORT.cost(prices, speed), paid) * BITS, 1)
    163.5
    """
    low, high = 1.0, 12.5e9
    if cost_of(low) >= dollars:
        raise InputError(
            f"no such network can be built for ${dollars:,.0f} per server: its fibre alone costs more; "
            "leave it out of the comparison"
        )
    while cost_of(high) < dollars:
        high *= 2
    while high - low > FINEST * high:
        middle = (low + high) / 2
        low, high = (middle, high) if cost_of(middle) < dollars else (low, middle)
    return (low + high) / 2


def price_list(name: str = DEFAULT_PRICES) -> PriceList:
    """A price list by name, or from a file of one's own (.toml)."""
    if name.lower().endswith(".toml"):
        return _of_file(Path(name))
    known = price_lists()
    if name not in known:
        raise InputError(f"there is no price list {name!r}: use one of {', '.join(known)}, or a file (.toml)")
    return known[name]


@cache
def price_lists() -> dict[str, PriceList]:
    """Every price list that comes with ropewalk."""
    listed = packaged_toml("ropewalk.hardware", "data/network_prices.toml")
    return {name: _read(name, record) for name, record in listed.items()}


def _read(name: str, record: dict[str, Any]) -> PriceList:
    rates = sorted(record["rates"], key=lambda rate: float(rate["gbps"]))
    return PriceList(
        name=name,
        source=record["source"],
        gbps=tuple(rate["gbps"] for rate in rates),
        pieces=tuple(PortPrice(rate["nic"], rate["transceiver"], rate["switch_port"]) for rate in rates),
        patch_panel_port=record["patch_panel_port"],
        ocs_port=record["ocs_port"],
        second_panel_switch=record["second_panel_switch"],
        fibre=record["fibre_per_metre"] * record["fibre_metres"],
        servers=record.get("servers", {}),
    )


def _of_file(path: Path) -> PriceList:
    """A list in a file of its own: the keys of one list, checked."""
    from ropewalk.hardware.price_file import checked  # keeps pydantic out of the start-up of the command line

    subject = f"price list {path}"
    text = read_text(path, subject, InputError)
    return _read(str(path), checked(parse_toml(text, subject, InputError), Findings(InputError, subject)))
