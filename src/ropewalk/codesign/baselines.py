"""The networks that a plan is compared with, each at its price.

Switched networks are given the best routing there is (packets sprayed over all shortest ways); `fat-tree-ecmp` is the
cost-equivalent tree again with one hashed path per pair, which is what most clusters run. Circuits, whether they change
inside the step or are set once for one matrix, take over the strategy that was found for the ideal switch, as in the
published comparison; all others have a search of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

from ropewalk import units
from ropewalk.choices import Choice, Choices
from ropewalk.codesign.demands import Demands
from ropewalk.codesign.network import StepNetwork, one_ring
from ropewalk.codesign.one_matrix import laid_from_one_matrix
from ropewalk.codesign.permutations import select_jumps
from ropewalk.codesign.reconfigure import CircuitSwitch
from ropewalk.codesign.sprayed import sprayed_fat_tree, sprayed_leaf_spine
from ropewalk.codesign.totient import totient_jumps
from ropewalk.collectives.hamiltonian import hamiltonian_cycles
from ropewalk.errors import InputError
from ropewalk.fabric import FatTree, IdealSwitch, LeafSpine, RandomRegular, Torus
from ropewalk.fabric.wiring import Orders, regular_rings
from ropewalk.hardware.prices import (
    HALF_TREE_PORT,
    OCS_PORT,
    PANEL_PORT,
    STATIC_PORT,
    TREE_PORT,
    Materials,
    PriceList,
    bandwidth_for,
    price_list,
)
from ropewalk.routing import dimension_rotated, ecmp, shortest

SIP_ML_DELAY_S = 25e-6
"""Assumed: what silicon photonics is said to need to move a circuit. It is not a published input of the comparison."""


@dataclass(frozen=True)
class Site:
    """The servers that are to be joined, and prices."""

    servers: int
    degree: int
    bandwidth: float
    """Bytes/s of a port."""
    latency: float = 1e-6
    """Of a link."""
    seed: int = 0
    prices: PriceList = field(default_factory=price_list)

    @property
    def together(self) -> float:
        """Bytes/s of all ports of a server."""
        return self.degree * self.bandwidth

    @property
    def plan_cost(self) -> float:
        """Dollars per server of the wiring that is planned."""
        return self.on_ports(PANEL_PORT)

    def on_ports(self, port: Materials) -> float:
        """Dollars per server where each of its ports takes these pieces."""
        return self.degree * port.cost(self.prices, self.bandwidth)


@dataclass(frozen=True, eq=False)
class Baseline:
    """A network to compare with."""

    name: str
    about: str
    cost: float
    """Dollars a server."""
    network: StepNetwork | None = None
    """None where circuits change while the step runs, or depend on what it sends."""
    laid_for: Callable[[Demands], StepNetwork] | None = None
    """The network for what a step sends."""
    circuits: CircuitSwitch | None = None
    strategy_of: str | None = None
    """The baseline whose strategy is taken over; None: it has a search of its own."""


def ideal_switch(site: Site) -> Baseline:
    """One NIC with the bandwidth of all ports on a switch that never blocks."""
    fabric = IdealSwitch(site.servers, site.together, site.latency).build()
    return Baseline(
        "ideal-switch",
        "one NIC with the bandwidth of all ports, on a non-blocking switch, priced as a fat-tree of that bandwidth",
        TREE_PORT.cost(site.prices, site.together),
        StepNetwork("ideal-switch", fabric, shortest, one_ring),
    )


def fat_tree(site: Site, *, hashed: bool = False) -> Baseline:
    """A fat-tree of full bisection for the cost of the plan: one NIC of d times B', which is less than d times B."""
    speed = bandwidth_for(lambda rate: TREE_PORT.cost(site.prices, rate), site.plan_cost)
    name = "fat-tree-ecmp" if hashed else "fat-tree"
    tree = _tree(site.servers, speed, site.latency)
    fabric, router = (tree.build(), ecmp(site.seed)) if hashed else (sprayed_fat_tree(tree), shortest)
    way = "one hashed path per pair" if hashed else "packets sprayed over all paths"
    return Baseline(
        name,
        f"full bisection at the cost of the plan: {speed * 8e-9:.0f} Gbps per server, {way}",
        site.plan_cost,
        StepNetwork(name, fabric, router, one_ring),
        strategy_of="fat-tree" if hashed else None,
    )


def oversubscribed_fat_tree(site: Site) -> Baseline:
    """A fat-tree of d times B in which half of the uplinks of the first switches is left out."""
    rack = max(2, 2 * (_tree(site.servers, 1.0, 0.0).half // 2))
    tree = LeafSpine(
        max(2, -(-site.servers // rack)), rack // 2, rack, bandwidth=site.together, latency=site.latency
    )  # fmt: skip
    return Baseline(
        "oversubscribed",
        f"one NIC with the bandwidth of all ports, {rack} servers per leaf with half as many uplinks (2:1), sprayed",
        HALF_TREE_PORT.cost(site.prices, site.together),
        StepNetwork("oversubscribed", sprayed_leaf_spine(tree), shortest, one_ring),
    )


def expander(site: Site) -> Baseline:
    """The same ports joined at random for good."""
    builder = RandomRegular(site.servers, site.degree, site.seed, site.bandwidth, site.latency)
    return Baseline(
        "expander",
        "a random regular graph of the same ports, without a panel; all-reduce over rings of servers",
        site.on_ports(STATIC_PORT),
        StepNetwork("expander", builder.build(), ecmp(site.seed), partial(_spread_rings, count=site.degree // 2)),
    )


def torus(site: Site) -> Baseline:
    """The same ports joined as a grid that wraps around; short of axes, cables are doubled."""
    shape = _torus_shape(site.servers, site.degree)
    speed = site.bandwidth * site.degree / sum(1 if side == 2 else 2 for side in shape)
    builder = Torus(shape, speed, site.latency)

    def rings(size: int) -> Orders:
        return _hamiltonian(shape) if size == site.servers else regular_rings(size, (1,), both_ways=True)

    return Baseline(
        "torus",
        f"a torus of {' x '.join(map(str, shape))} with the same ports, without a panel",
        site.on_ports(STATIC_PORT),
        StepNetwork("torus", builder.build(), dimension_rotated(), rings),
    )


def one_matrix(site: Site) -> Baseline:
    """Circuits that are set once, for all-reduces and pairs added into one matrix."""
    if site.degree < 2 < site.servers:
        raise InputError(
            f"one circuit per server cannot connect {site.servers} servers: give 2 ports or more, or leave "
            "one-matrix out"
        )
    lay = partial(laid_from_one_matrix, degree=site.degree, bandwidth=site.bandwidth, latency=site.latency)
    return Baseline(
        "one-matrix",
        "circuits set once for one matrix of all-reduces and pairs together; servers relay traffic",
        site.on_ports(OCS_PORT),
        laid_for=lay,
        strategy_of="ideal-switch",
    )


def sip_ml(site: Site) -> Baseline:
    """Circuits of silicon photonics between those that talk, and no relays."""
    switch = CircuitSwitch(site.degree, site.bandwidth, delay_s=SIP_ML_DELAY_S, forwarding=False, latency=site.latency)
    return Baseline(
        "sip-ml",
        f"one-hop circuits without relaying, reconfigured within {SIP_ML_DELAY_S * 1e6:g} us; priced as an OCS",
        site.on_ports(OCS_PORT),
        circuits=switch,
        strategy_of="ideal-switch",
    )


def reconfigured(site: Site, *, delay_s: float = 10e-3, forwarding: bool = True) -> Baseline:
    """An optical circuit switch that follows the demand inside the step."""
    switch = CircuitSwitch(site.degree, site.bandwidth, delay_s, forwarding=forwarding, latency=site.latency)
    relays = "servers relay traffic" if forwarding else "no relays"
    dark, live = units.show_seconds(delay_s), units.show_seconds(switch.window_s)
    return Baseline(
        "ocs-reconfig" if forwarding else "ocs-reconfig-no-relay",
        f"circuits follow the demand: {dark} dark, {live} live, {relays}",
        site.on_ports(OCS_PORT),
        circuits=switch,
        strategy_of="ideal-switch",
    )


BASELINES: Choices[Choice[Callable[[Site], Baseline]]] = Choices(
    "baseline",
    (
        Choice("ideal-switch", ideal_switch, "one NIC with the bandwidth of all ports, on a non-blocking switch"),
        Choice("fat-tree", fat_tree, "a full-bisection fat-tree at the cost of the plan, with packet spraying"),
        Choice("fat-tree-ecmp", partial(fat_tree, hashed=True), "the same fat-tree, one hashed path per pair"),
        Choice("oversubscribed", oversubscribed_fat_tree, "a fat-tree with half the uplinks on the first tier"),
        Choice("expander", expander, "the same ports as a fixed random graph"),
        Choice("torus", torus, "the same ports as a torus", where="a number of servers with sides of 3 or more"),
        Choice("one-matrix", one_matrix, "circuits set once for one matrix of all-reduces and pairs together",
               where="servers with 2 ports or more"),
        Choice("sip-ml", sip_ml, "silicon-photonics circuits between communicating servers, without relaying"),
        Choice("ocs-reconfig", reconfigured, "optical circuits reconfigured during the step"),
        Choice("ocs-reconfig-no-relay", partial(reconfigured, forwarding=False), "the same circuits, without relaying"),
    ),
)  # fmt: skip
"""Every network to compare with. Adding one is a function that makes it and a line here."""


def chosen_baselines(names: Sequence[str], site: Site) -> tuple[list[Baseline], list[str]]:
    """The baselines of these names (`all` is every one) and what is said about those that cannot be built here.

    A name that was typed must work; under `all`, a network that does not exist for this many servers is left out with a
    note.
    """
    unknown = [name for name in names if name.partition(":")[0] not in BASELINES and name != "all"]
    if unknown:
        raise InputError(BASELINES.unknown(unknown[0], also=["all"]))
    wanted = [name for name in BASELINES if name in names or "all" in names]
    made, notes = [], []
    for name in [*wanted, *(name for name in dict.fromkeys(names) if ":" in name)]:
        try:
            made.append(_with_delay(name, site) if ":" in name else BASELINES[name].make(site))
        except InputError as problem:
            if name in names:
                raise
            notes.append(f"{name} is left out of the comparison: {problem}")
    return made, notes


def _with_delay(name: str, site: Site) -> Baseline:
    """`ocs-reconfig:100us`: circuits that change within the time behind the colon."""
    plain, _, delay = name.partition(":")
    relays = {"ocs-reconfig": True, "ocs-reconfig-no-relay": False}
    if plain not in relays:
        raise InputError(
            f"{plain} does not change while a step runs: leave {delay!r} out, or use {' or '.join(relays)}"
        )
    return replace(reconfigured(site, delay_s=units.seconds(delay), forwarding=relays[plain]), name=name)


def _tree(servers: int, bandwidth: float, latency: float) -> FatTree:
    """The smallest three-tier tree with room for the servers; ports that nobody uses are not paid for."""
    radix = 4
    while radix**3 // 4 < servers:
        radix += 2
    pods = max(2, -(-servers // (radix // 2) ** 2))
    return FatTree(radix, pods, bandwidth=bandwidth, latency=latency)


def _torus_shape(servers: int, degree: int) -> tuple[int, ...]:
    """As many axes as there are pairs of ports where all sides can be 3 or more, otherwise fewer; most equal sides."""
    for axes in range(degree // 2, 0, -1):
        shapes = [shape for shape in _factored(servers, axes) if min(shape) >= 3]
        if shapes and (axes > 1 or degree == 2):
            return min(shapes, key=lambda shape: (max(shape) - min(shape), shape))
    raise InputError(
        f"{servers} servers with {degree} ports do not form a torus: it needs two sides of 3 or more; leave torus out"
    )


def _factored(number: int, parts: int, least: int = 2) -> list[tuple[int, ...]]:
    """All ways to write a number as a product of this many ascending factors."""
    if parts == 1:
        return [(number,)] if number >= least else []
    return [
        (side, *rest)
        for side in range(least, math.isqrt(number) + 1)
        if number % side == 0
        for rest in _factored(number // side, parts - 1, side)
    ]


@cache
def _hamiltonian(shape: tuple[int, ...]) -> Orders:
    """Cycles that share no cable, each both ways."""
    forward = [tuple(int(host) for host in cycle) for cycle in hamiltonian_cycles(shape)]
    return tuple(order for ring in forward for order in (ring, (ring[0], *ring[:0:-1])))


@cache
def _spread_rings(size: int, count: int) -> Orders:
    """As many regular rings as a wiring of these ports would have: on a random graph they spread the bytes."""
    candidates = totient_jumps(size, duplex=True)
    jumps = select_jumps(size, min(count, len(candidates)), candidates, duplex=True) if count else (1,)
    return regular_rings(size, jumps or (1,), both_ways=True)
