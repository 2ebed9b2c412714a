"""What a network costs: price lists as data, the bill of every kind of network, and bandwidth for equal money.

Prices are known at a few line rates. Between two of them the price of a piece is interpolated; above the highest a port
is several of the highest; below the lowest a piece costs its part of the lowest in proportion, while fibre stays fibre.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ropewalk.errors import InputError

BITS = 8e-9
"""Gbps in a byte per second."""
DEFAULT_PRICES = "mixnet"
FINEST = 1e-9
"""Bandwidth for equal money is found to this part of itself."""


@dataclass(frozen=True)
class Piece:
    """What one end of a link costs at one line rate."""

    nic: float
    transceiver: float
    switch_port: float


@dataclass(frozen=True)
class PriceList:
    """Dollars a piece."""

    name: str
    source: str
    gbps: tuple[float, ...]
    """Line rates at which prices are known, ascending."""
    pieces: tuple[Piece, ...]
    patch_panel_port: float
    ocs_port: float
    second_panel_switch: float
    fibre: float
    """One fibre of mean length."""

    def at(self, bandwidth: float) -> Piece:
        """The pieces of a link of this many bytes/s."""
        rate = bandwidth * BITS
        if not rate > 0:
            raise InputError(f"a link of {rate:g} Gbps has no price: give a bandwidth above 0, such as 100Gbps")
        top, bottom = self.gbps[-1], self.gbps[0]
        factor = rate / top if rate > top else rate / bottom if rate < bottom else 1.0
        known = min(max(rate, bottom), top)
        columns = zip(*((piece.nic, piece.transceiver, piece.switch_port) for piece in self.pieces), strict=True)
        return Piece(*(factor * float(np.interp(known, self.gbps, column)) for column in columns))


def direct_cost(prices: PriceList, degree: int, bandwidth: float) -> float:
    """Dollars a server for ports on patch panels: NIC, transceiver, panel port and fibre for each port.

    >>> round(direct_cost(price_list(), 4, 12.5e9))
    4032
    """
    return _direct(prices, degree, bandwidth, prices.patch_panel_port, 1.0)


def ocs_cost(prices: PriceList, degree: int, bandwidth: float) -> float:
    """Dollars a server for ports on optical circuit switches."""
    return _direct(prices, degree, bandwidth, prices.ocs_port, 1.0)


def static_cost(prices: PriceList, degree: int, bandwidth: float) -> float:
    """Dollars a server for ports joined by fibre for good: no panel, and one fibre for two ports."""
    return _direct(prices, degree, bandwidth, 0.0, 0.5)


def look_ahead_cost(prices: PriceList, degree: int, bandwidth: float) -> float:
    """Dollars a server with a second panel beside the first, and a 1x2 switch at every port to change over."""
    second = prices.patch_panel_port + prices.second_panel_switch + prices.fibre
    return direct_cost(prices, degree, bandwidth) + degree * second


def _direct(prices: PriceList, degree: int, bandwidth: float, port: float, fibres: float) -> float:
    piece = prices.at(bandwidth)
    return degree * (piece.nic + piece.transceiver + port + fibres * prices.fibre)


def fat_tree_cost(prices: PriceList, bandwidth: float) -> float:
    """Dollars a server for a three-tier tree of full bisection: NIC, 5 switch ports, 6 transceivers, 3 fibres.

    >>> [round(fat_tree_cost(price_list(), gbps / 8 * 1e9)) for gbps in (100, 200, 400)]
    [2638, 4833, 11353]
    """
    piece = prices.at(bandwidth)
    return piece.nic + 5 * piece.switch_port + 6 * piece.transceiver + 3 * prices.fibre


def oversubscribed_cost(prices: PriceList, bandwidth: float) -> float:
    """Dollars a server where half of the uplinks is left out: half of all above the first switch."""
    piece = prices.at(bandwidth)
    return piece.nic + 3 * piece.switch_port + 4 * piece.transceiver + 2 * prices.fibre


def bandwidth_for(cost_of: Callable[[float], float], dollars: float) -> float:
    """The bytes/s at which a network costs this much; `cost_of` grows with the bandwidth.

    >>> prices = price_list()
    >>> paid = direct_cost(prices, 4, 12.5e9)
    >>> round(bandwidth_for(lambda speed: fat_tree_cost(prices, speed), paid) * BITS, 1)
    163.5
    """
    low, high = 1.0, 12.5e9
    if cost_of(low) >= dollars:
        raise InputError(
            f"no such network can be had for ${dollars:,.0f} a server: its fibre alone costs more; "
            "leave it out of the comparison"
        )
    while cost_of(high) < dollars:
        high *= 2
    while high - low > FINEST * high:
        middle = (low + high) / 2
        low, high = (middle, high) if cost_of(middle) < dollars else (low, middle)
    return (low + high) / 2


def price_list(name: str = DEFAULT_PRICES) -> PriceList:
    """A price list by name."""
    known = price_lists()
    if name not in known:
        raise InputError(f"there is no price list {name!r}: use one of {', '.join(known)}")
    return known[name]


@cache
def price_lists() -> dict[str, PriceList]:
    """Every price list that comes with ropewalk."""
    text = files("ropewalk.codesign").joinpath("data/network_prices.toml").read_text(encoding="utf-8")
    return {name: _read(name, record) for name, record in tomllib.loads(text).items()}


def _read(name: str, record: dict[str, Any]) -> PriceList:
    rates = record["rates"]
    return PriceList(
        name=name,
        source=record["source"],
        gbps=tuple(rate["gbps"] for rate in rates),
        pieces=tuple(Piece(rate["nic"], rate["transceiver"], rate["switch_port"]) for rate in rates),
        patch_panel_port=record["patch_panel_port"],
        ocs_port=record["ocs_port"],
        second_panel_switch=record["second_panel_switch"],
        fibre=record["fibre_per_metre"] * record["fibre_metres"],
    )
