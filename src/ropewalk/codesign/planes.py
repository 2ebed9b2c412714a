"""The patch list: which port of which server connects to which, on which panel.

In a cluster of planes, port i of every server leads to panel i, so a panel sees every server once. A wiring of d
ports is only patchable if its cables can be dealt out to d panels: simplex cables into d permutations, which always
works (König), duplex cables into d matchings, which does not: a ring of odd length needs three. Then an additional
panel helps (each server leaves one of the panels out), or a single large panel, on which any two ports can be joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ropewalk.codesign.colouring import colour_edges
from ropewalk.errors import FabricError
from ropewalk.fabric.wiring import Wiring


@dataclass(frozen=True, order=True)
class Patch:
    """One connection of a panel. Simplex: from the sending side of a port to the receiving side of the peer's."""

    plane: int
    server: int
    port: int
    peer: int
    peer_port: int
    panel_port: int
    """Where the server's fibre ends on the panel, and the peer's."""
    peer_panel_port: int


@dataclass(frozen=True)
class PatchList:
    """All connections, sorted by plane and server."""

    planes: int
    panel_ports: int
    """Ports that each panel needs (simplex: on the sending and on the receiving side)."""
    duplex: bool
    patches: tuple[Patch, ...]

    def lines(self) -> Iterator[str]:
        """What a technician reads, one connection a line."""
        arrow = "<->" if self.duplex else "->"
        for patch in self.patches:
            yield (
                f"panel {patch.plane}: {patch.panel_port} {arrow} {patch.peer_panel_port}"
                f"  (server {patch.server} port {patch.port} {arrow} server {patch.peer} port {patch.peer_port})"
            )


def patch_list(wiring: Wiring, *, extra_planes: int = 0) -> PatchList:
    """The patch list with one panel for each port number, or refused where the cables do not fit on that many.

    With `extra_planes`, up to so many more panels are used. A server then has ports on some of the panels only,
    numbered in the order of their panels.

    >>> ring = Wiring(4, 2, True, 1e9, 0.0, (), ((0, 1, 1), (0, 3, 1), (1, 2, 1), (2, 3, 1)), 2, 0)
    >>> print(*patch_list(ring).lines(), sep="\\n")
    panel 0: 0 <-> 1  (server 0 port 0 <-> server 1 port 0)
    panel 0: 2 <-> 3  (server 2 port 0 <-> server 3 port 0)
    panel 1: 0 <-> 3  (server 0 port 1 <-> server 3 port 1)
    panel 1: 1 <-> 2  (server 1 port 1 <-> server 2 port 1)
    """
    most = wiring.degree + extra_planes
    cables = _single_cables(wiring)
    needed = least_planes(wiring)
    for planes in range(max(needed, wiring.degree), most + 1):
        colours = _dealt_out(wiring, cables, planes)
        if colours is not None:
            return _patched(wiring, cables, colours, planes)
    if wiring.duplex and wiring.servers % 2:
        why, remedy = f"{wiring.servers} servers cannot all be paired at once", "an even number of servers"
    else:
        why, remedy = "no assignment was found; rings of odd length need three panels", "groups of even size"
    raise FabricError(
        f"the {len(cables)} cables do not fit on {most} panels with every server once on each ({why}): "
        f"use {remedy}, simplex cables, an additional panel or one large panel"
    )


def fitted(wiring: Wiring) -> Wiring:
    """The wiring without the few cables for which no panel has room, as long as none of a ring is among them.

    Cables that were laid for pairs where ports happened to be free can close odd cycles, which then need a panel more
    than servers have ports; a cable less costs less than a panel more. Where rings themselves do not fit, the wiring
    comes back as it is, and `patch_list` says what helps.

    >>> from ropewalk.fabric.wiring import GroupRings
    >>> ring = ((0, 1, 1), (0, 3, 1), (1, 2, 1), (2, 3, 1))
    >>> fitted(Wiring(4, 3, True, 1e9, 0.0, (GroupRings(4, (1,)),), tuple(sorted((*ring, (0, 2, 1)))), 2, 1)).cables
    ((0, 1, 1), (0, 2, 1), (0, 3, 1), (1, 2, 1), (2, 3, 1))
    """
    cables = sorted(_single_cables(wiring))
    # What is not of a ring may go; an odd ring has no planes of its own to begin with, but is kept all the same.
    of_rings = Counter(
        cable
        for group in wiring.rings
        if group.wired
        for jump in group.jumps
        for cable, _ in wiring.ring_cables(group.size, jump)
    )
    droppable = []
    for cable in cables:
        droppable.append(of_rings[cable] <= 0)
        of_rings[cable] -= 1
    colours = _dealt_out(wiring, cables, wiring.degree, droppable)
    if colours is None:
        return wiring
    kept = Counter(cable for cable, colour in zip(cables, colours, strict=True) if colour >= 0)
    return replace(wiring, cables=tuple((a, b, count) for (a, b), count in sorted(kept.items())))


def one_panel(wiring: Wiring) -> PatchList:
    """The patch list of a single panel that has all ports of all servers: any degree-d wiring fits.

    Port p of server s ends at panel port s * degree + p. The ports of a server are numbered in the order of their
    peers.
    """
    cables = _single_cables(wiring)
    sending = [0] * wiring.servers
    receiving = sending if wiring.duplex else [0] * wiring.servers
    patches = []
    for a, b in cables:
        port, peer_port = sending[a], receiving[b]
        sending[a] += 1
        receiving[b] += 1
        patches.append(
            Patch(0, a, port, b, peer_port, a * wiring.degree + port, b * wiring.degree + peer_port),
        )
    return PatchList(1, wiring.servers * wiring.degree, wiring.duplex, tuple(sorted(patches)))


def least_planes(wiring: Wiring) -> int:
    """Panels that a wiring needs at the very least: for its busiest server, and for its number of cables.

    A panel joins at most half of the servers (rounded down) to the other half with duplex cables, so 5 servers of two
    ports in a ring need 3.

    >>> least_planes(Wiring(5, 2, True, 1e9, 0.0, (), tuple((a, a + 1, 1) for a in range(4)) + ((0, 4, 1),), 2, 0))
    3
    """
    busiest = int(wiring.ports_used().max(initial=0))
    at_once = wiring.servers // 2 if wiring.duplex else wiring.servers
    return max(busiest, -(-sum(count for _, _, count in wiring.cables) // at_once))


def _single_cables(wiring: Wiring) -> list[tuple[int, int]]:
    return [(a, b) for a, b, count in wiring.cables for _ in range(count)]


def _dealt_out(
    wiring: Wiring, cables: list[tuple[int, int]], planes: int, may_drop: list[bool] | None = None
) -> list[int] | None:
    """A plane for each cable: rings keep together where they can, and everything else goes where there is room."""
    start = _ring_planes(wiring, cables, planes)
    if wiring.duplex:
        return colour_edges(wiring.servers, cables, planes, start, may_drop)
    # Senders and receivers are different ends, so the graph is bipartite.
    return colour_edges(2 * wiring.servers, [(a, b + wiring.servers) for a, b in cables], planes, start, may_drop)


def _ring_planes(wiring: Wiring, cables: list[tuple[int, int]], planes: int) -> list[int]:
    """Whole rings on planes of their own: one for simplex, two alternating ones for duplex rings of even length."""
    waiting: dict[tuple[int, int], list[int]] = {}
    for number, cable in enumerate(cables):
        waiting.setdefault(cable, []).append(number)
    start, first = [-1] * len(cables), 0
    for group in wiring.rings:
        if not group.wired or (wiring.duplex and group.size % 2):
            continue
        width = 2 if wiring.duplex and group.size > 2 else 1
        for jump in group.jumps:
            if first + width > planes:
                return start
            for cable, place in wiring.ring_cables(group.size, jump):
                if waiting.get(cable):
                    start[waiting[cable].pop(0)] = first + place % width
            first += width
    return start


def _patched(wiring: Wiring, cables: list[tuple[int, int]], colours: list[int], planes: int) -> PatchList:
    port_at = [{plane: plane for plane in range(planes)} for _ in range(wiring.servers)]
    if planes > wiring.degree:
        used: list[set[int]] = [set() for _ in range(wiring.servers)]
        for (a, b), plane in zip(cables, colours, strict=True):
            used[a].add(plane)
            used[b].add(plane)
        port_at = [{plane: port for port, plane in enumerate(sorted(there))} for there in used]
    patches = sorted(
        Patch(plane, a, port_at[a][plane], b, port_at[b][plane], a, b)
        for (a, b), plane in zip(cables, colours, strict=True)
    )
    return PatchList(planes, wiring.servers, wiring.duplex, tuple(patches))
