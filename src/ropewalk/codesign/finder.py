"""TopologyFinder: from what a strategy sends to the cables that carry it (Wang et al., TopoOpt, NSDI 2023).

Sums over groups and transfers between pairs come in apart and stay apart, because a sum can take any ring and a
transfer cannot. The steps of the published algorithm, with what it leaves open decided in the files named:

1. split the ports between sums and pairs, and those of the sums among group sizes (`degrees.py`, `cosets.py`);
2. choose rings (`selection.py`: for all groups together, or group by group by the published rule);
3. lay rounds of the heaviest matching for pairs (`matching.py`);
4. put both together; ports that are left shorten ways (`spare_ports.py`).

Groups that got no ring ride on the cables of others, along the ring whose hops are the fewest there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.cable_draft import CableDraft
from ropewalk.codesign.circulants import Rings
from ropewalk.codesign.cosets import wire_bytes_by_size
from ropewalk.codesign.degrees import Degrees, port_splits, ports_of_ring, share_ports
from ropewalk.codesign.demands import Demands
from ropewalk.codesign.matching import lay_matchings
from ropewalk.codesign.planes import fitted, least_planes
from ropewalk.codesign.selection import JumpSelection, different, jointly, with_repeats
from ropewalk.codesign.spare_ports import lay_shortcuts
from ropewalk.codesign.totient import directed_jumps, totient_jumps
from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.wiring import GroupRings, Wiring


def find_topology(
    demands: Demands,
    *,
    degree: int,
    bandwidth: float,
    duplex: bool = True,
    latency: float = 0.0,
    selection: JumpSelection = jointly,
    planes: bool = True,
) -> Wiring:
    """The wiring for these demands: connected, within `degree` ports of every server, and always the same.

    Ports are split as published, and the first choice of rings is taken. With `planes`, cables for pairs that would not
    fit on one panel for each port number are left out (`planes.fitted`); on a single large panel, where any two ports
    can be joined, they need not be.

    >>> from ropewalk.codesign.demands import GroupSum
    >>> all_reduce = GroupSum(tuple(range(12)), 1e9)
    >>> wiring = find_topology(Demands(12, (all_reduce,), np.zeros((12, 12))), degree=4, bandwidth=3.125e9)
    >>> wiring.rings, len(wiring.cables)
    ((GroupRings(size=12, jumps=(1, 5), wired=True),), 24)
    """
    plant = _Plant(demands, degree, bandwidth, duplex, latency, planes)
    degrees = share_ports(demands, degree, duplex=duplex)
    return plant.wired(degrees, plant.choices(degrees, selection)[0])


def find_topologies(
    demands: Demands,
    *,
    degree: int,
    bandwidth: float,
    duplex: bool = True,
    latency: float = 0.0,
    selection: JumpSelection = jointly,
    planes: bool = True,
) -> tuple[Wiring, ...]:
    """Wirings among which a simulation should choose, none twice: every split of ports with every choice of rings.

    The first is that of `find_topology`.
    """
    plant = _Plant(demands, degree, bandwidth, duplex, latency, planes)
    return tuple(
        dict.fromkeys(
            plant.wired(degrees, rings)
            for degrees in port_splits(demands, degree, duplex=duplex)
            for rings in plant.choices(degrees, selection)
        )
    )


def find_circulants(
    demands: Demands,
    *,
    degree: int,
    bandwidth: float,
    duplex: bool = True,
    latency: float = 0.0,
    selection: JumpSelection = jointly,
    planes: bool = True,
) -> tuple[Wiring, ...]:
    """All ports as rings over all servers, those with the fewest hops for the bytes of pairs.

    Where everybody sends to everybody, matchings have nothing to go by: of equal pairs they join any, and paths grow
    long. Rings leave few hops between any two servers.

    >>> everybody = Demands(16, (), 1.0 - np.eye(16))
    >>> find_circulants(everybody, degree=4, bandwidth=12.5e9)[0].rings
    (GroupRings(size=16, jumps=(1, 3), wired=True),)
    """
    plant, servers = _Plant(demands, degree, bandwidth, duplex, latency, planes), demands.servers
    ports = ports_of_ring(servers, duplex=duplex)
    rings = degree // ports
    degrees = Degrees(rings * ports, degree - rings * ports, {servers: rings}, rings * ports)
    return tuple(dict.fromkeys(plant.wired(degrees, chosen) for chosen in plant.choices(degrees, selection)))


@dataclass(frozen=True, eq=False)
class _Plant:
    """Demands and ports: all that cables depend on besides the choice of rings."""

    demands: Demands
    degree: int
    bandwidth: float
    duplex: bool
    latency: float
    planes: bool

    def __post_init__(self) -> None:
        _check(self.demands.servers, self.degree, self.bandwidth, self.latency, self.duplex)

    def choices(self, degrees: Degrees, selection: JumpSelection) -> list[Rings]:
        wanted = different(degrees.rings, duplex=self.duplex)
        chosen = selection(wanted, self.demands, duplex=self.duplex)
        return [with_repeats(rings, degrees.rings) for rings in chosen]

    def wired(self, degrees: Degrees, chosen: Rings) -> Wiring:
        demands, duplex = self.demands, self.duplex
        draft = CableDraft(demands.servers, self.degree, duplex=duplex)
        rings = [GroupRings(size, jumps) for size, jumps in chosen.items()]
        for group in rings:
            for jump in group.jumps:
                draft.add_ring(group.size, jump)
        remaining = lay_matchings(draft, demands.pairs)
        riding = _riding(demands, draft, {group.size for group in rings})
        carried = _ring_traffic(demands, riding, duplex)
        if draft.sending.any() and carried.any():
            lay_matchings(draft, remaining + carried)
        lay_shortcuts(draft, demands.pairs + carried)
        wiring = Wiring(
            servers=demands.servers,
            degree=self.degree,
            duplex=duplex,
            bandwidth=self.bandwidth,
            latency=self.latency,
            rings=(*rings, *riding),
            cables=draft.cables(),
            degree_sums=degrees.ring_ports,
            degree_pairs=self.degree - degrees.ring_ports,
        )
        return fitted(wiring) if self.planes and least_planes(wiring) <= self.degree else wiring


def _check(servers: int, degree: int, bandwidth: float, latency: float, duplex: bool) -> None:
    findings = Findings(FabricError, "wiring")
    if servers < 2:
        findings.add(f"{servers} servers need no cables: give at least 2")
    elif degree < 1:
        findings.add(f"servers have {degree} ports: give at least 1")
    elif duplex and degree == 1 and servers > 2:
        findings.add(f"one duplex port cannot connect {servers} servers: give 2 or more, or use simplex cables")
    if not 0 < bandwidth < np.inf:
        findings.add(f"a cable carries {bandwidth:g} bytes/s: give a bandwidth above 0")
    if not 0 <= latency < np.inf:
        findings.add(f"a cable takes {latency:g} s: give a latency of 0 or more")
    findings.raise_if_any()


def _riding(demands: Demands, draft: CableDraft, wired: set[int]) -> list[GroupRings]:
    """For each group size without rings of its own, the one ring whose hops are the fewest; ties: the smaller jump."""
    sizes = [size for size in wire_bytes_by_size(demands) if size not in wired]
    if not sizes:
        return []
    hops, servers = draft.hops(), np.arange(demands.servers)
    riding = []
    for size in sizes:
        stride = demands.servers // size
        candidates = totient_jumps(size, duplex=draft.duplex)
        lengths = [int(hops[servers, (servers + jump * stride) % demands.servers].sum()) for jump in candidates]
        riding.append(GroupRings(size, (candidates[int(np.argmin(lengths))],), wired=False))
    return riding


def _ring_traffic(demands: Demands, riding: list[GroupRings], duplex: bool) -> NDArray[np.float64]:
    """Bytes between servers as sums of riding groups go along their rings: each member sends 2(k-1)/k of a sum."""
    traffic = np.zeros_like(demands.pairs)
    rings = {group.size: directed_jumps(group.size, group.jumps, duplex=duplex) for group in riding}
    for group in demands.sums:
        size = len(group.servers)
        for jump in rings.get(size, ()):
            members = np.array(group.servers, np.int64)
            onward = (members + jump * (demands.servers // size)) % demands.servers
            traffic[members, onward] += group.wire_bytes / size / len(rings[size])
    return traffic
