"""What the topology file of a server holds, as rows of nodes and links and the ports that cables are plugged into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ropewalk.errors import Findings
from ropewalk.fabric.sheet import LinkRow, NodeRow


@dataclass(frozen=True)
class Port:
    """A port of a network card: where a cable of the network outside is plugged in."""

    name: str
    card: str
    """The network card it belongs to."""
    bandwidth: float
    """Bytes/s, one direction."""
    server: int
    number: int


@dataclass
class NcclServer:
    """What one file describes: usually one server, or several that share NVLink."""

    servers: int = 0
    gpus: list[NodeRow] = field(default_factory=list)
    switches: list[NodeRow] = field(default_factory=list)
    nvlinks: list[LinkRow] = field(default_factory=list)
    """Links between GPUs, and between GPUs and NVSwitches."""
    links: list[LinkRow] = field(default_factory=list)
    """All others."""
    ports: list[Port] = field(default_factory=list)

    @property
    def top(self) -> int:
        """The highest level of its switches."""
        return max((node.level for node in self.switches), default=0)


def without_ports(server: NcclServer) -> NcclServer:
    """The server alone: its network cards lead nowhere, and no GPU reaches another through one."""
    gone = {port.name for port in server.ports} | {port.card for port in server.ports}
    return replace(
        server,
        switches=[node for node in server.switches if node.name not in gone],
        links=[link for link in server.links if link.src not in gone and link.dst not in gone],
        ports=[],
    )


def as_planned(server: NcclServer, findings: Findings) -> NcclServer:
    """As NCCL plans with a server: over NVLink alone where that joins all its GPUs, over everything elsewhere."""
    return with_nvlink_alone(server, findings) if _nvlink_joins_all(server) else server


def as_wired(server: NcclServer, findings: Findings) -> NcclServer:
    """Every link of the file, PCIe between GPUs included."""
    return server


def _nvlink_joins_all(server: NcclServer) -> bool:
    reached = {row.name for row in server.gpus[:1]}
    before = 0
    while len(reached) > before:
        before = len(reached)
        for link in server.nvlinks:
            if link.src in reached or link.dst in reached:
                reached |= {link.src, link.dst}
    return bool(server.nvlinks) and all(gpu.name in reached for gpu in server.gpus)


View = Callable[[NcclServer, Findings], NcclServer]


def with_nvlink_alone(server: NcclServer, findings: Findings) -> NcclServer:
    """The server as NCCL plans with it: GPUs talk over NVLink, and every GPU has its own way to the nearest cards.

    PCIe switches and sockets are gone. A GPU connects to the cards that are the fewest links away, at the speed of the
    slowest of these links; GPUs with the same cards share them out. Cards that are nearest to no GPU are left out.
    """
    if not _nvlink_joins_all(server):
        findings.add("NVLink does not connect all GPUs: leave inside out, or write all")
    ways = {gpu.name: _ways_to_cards(server, gpu.name) for gpu in server.gpus}
    sharing: defaultdict[tuple[str, ...], list[NodeRow]] = defaultdict(list)
    for gpu in server.gpus:
        if ways[gpu.name]:
            sharing[tuple(ways[gpu.name])].append(gpu)
    joined: list[LinkRow] = []
    for cards, gpus in sharing.items():
        for place, gpu in enumerate(gpus):
            own = cards[place :: len(gpus)] if len(cards) >= len(gpus) else [cards[place * len(cards) // len(gpus)]]
            joined += [LinkRow(gpu.name, card, ways[gpu.name][card], 0.0, 1, True, gpu.where) for card in own]
    used = {link.dst for link in joined}
    ports = [port for port in server.ports if port.card in used]
    kept = used | {port.name for port in ports} | {link.dst for link in server.nvlinks}
    cables = [link for link in server.links if link.src in used and link.dst in kept]
    switches = [node for node in server.switches if node.name in kept]
    return NcclServer(server.servers, server.gpus, switches, server.nvlinks, joined + cables, ports)


def _ways_to_cards(server: NcclServer, gpu: str) -> dict[str, float | None]:
    """The cards nearest to a GPU, with the bytes/s of the way to each, by breadth-first search from the GPU."""
    neighbours: defaultdict[str, list[tuple[str, float | None]]] = defaultdict(list)
    gpus, cards = {row.name for row in server.gpus}, {port.card for port in server.ports}
    for link in server.links:
        neighbours[link.src].append((link.dst, link.bandwidth))
        neighbours[link.dst].append((link.src, link.bandwidth))
    seen: dict[str, float | None] = {gpu: float("inf")}
    edge = [gpu]
    while edge and not cards & set(edge):
        beyond: dict[str, float | None] = {}
        for node in edge:
            for peer, bandwidth in neighbours[node]:
                if peer not in seen and peer not in gpus:
                    so_far = seen[node]
                    speed = None if so_far is None or bandwidth is None else min(so_far, bandwidth)
                    beyond.setdefault(peer, speed)
        seen |= beyond
        edge = list(beyond)
    return {card: seen[card] for card in edge if card in cards}


INSIDE: dict[str, View] = {"planned": as_planned, "nvlink": with_nvlink_alone, "all": as_wired}
"""What of the links inside a server is used."""
