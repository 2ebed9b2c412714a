"""NCCL's graph file (`NCCL_GRAPH_FILE`): the order in which every channel's ring visits the GPUs of a server.

A file describes one server: for every channel the port that data enters through, the GPUs in order, and the port that
it leaves through. NCCL joins the servers itself, in ascending order, so a ring over several servers must visit them so,
and there is a file for each. NCCL's makers call the file a tool for experiments: NCCL still decides when to use rings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ropewalk.documents.from_xml import Element, read_xml
from ropewalk.documents.numbers import finite
from ropewalk.errors import Findings, ProgramError
from ropewalk.export.chakra.together import write_together
from ropewalk.export.nccl.rings import MOST_CHANNELS
from ropewalk.fabric.nccl_attributes import text_of, whole_of

RING_GRAPH, RING_PATTERN = 0, 4
LINK_TYPES = ("LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
"""How far two ends are from each other, in NCCL's words: NVLink, over a switch, over the socket, between sockets."""


@dataclass(frozen=True)
class RingChannel:
    """One ring inside one server: (device, rank) of its GPUs in order, and the ports it comes and goes through."""

    gpus: tuple[tuple[int, int], ...]
    enters: int | None = None
    leaves: int | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(rank for _, rank in self.gpus)


@dataclass(frozen=True)
class RingGraph:
    """The rings of one server, with the GB/s that NCCL shall expect of each."""

    channels: tuple[RingChannel, ...]
    speed_intra: float
    speed_inter: float
    type_intra: str = "NVL"
    type_inter: str = "PIX"

    def to_xml(self) -> str:
        """The file, as NCCL itself would write it: devices in hexadecimal, ranks in decimal."""
        alike = int(len({channel.ranks for channel in self.channels}) == 1)
        lines = [
            '<graphs version="1">',
            f'  <graph id="{RING_GRAPH}" pattern="{RING_PATTERN}" crossnic="{int(self._crosses())}" '
            f'nchannels="{len(self.channels)}" speedintra="{self.speed_intra:g}" speedinter="{self.speed_inter:g}" '
            f'latencyinter="0" typeintra="{self.type_intra}" typeinter="{self.type_inter}" samechannels="{alike}">',
        ]
        for channel in self.channels:
            lines.append("    <channel>")
            lines += [f'      <net dev="{channel.enters:#x}"/>'] if channel.enters is not None else []
            lines += [f'      <gpu dev="{dev:#x}" rank="{rank}"/>' for dev, rank in channel.gpus]
            lines += [f'      <net dev="{channel.leaves:#x}"/>'] if channel.leaves is not None else []
            lines.append("    </channel>")
        return "\n".join([*lines, "  </graph>", "</graphs>", ""])

    def _crosses(self) -> bool:
        return any(channel.enters != channel.leaves for channel in self.channels)


def ring_graphs(
    orders: Sequence[Sequence[int]],
    servers: Sequence[int] | None = None,
    ports: Sequence[int] | None = None,
    *,
    speed_intra: float,
    speed_inter: float | None = None,
    type_intra: str = "NVL",
    type_inter: str = "PIX",
) -> list[RingGraph]:
    """The file of every server for rings that visit the ranks in these orders.

    `servers` gives the server of each rank (one for all unless given), `ports` the network port nearest to each, which
    rings over several servers need. GPUs are devices 0, 1, … of their server in the order of their ranks. Speeds are
    GB/s of one channel.

    >>> ring_graphs([[0, 1, 2, 3]], [0, 0, 1, 1], [0, 1, 0, 1], speed_intra=20)[1].channels[0]
    RingChannel(gpus=((0, 2), (1, 3)), enters=0, leaves=1)
    """
    findings = Findings(ProgramError, "rings for NCCL")
    ranks = len(orders[0]) if orders else 0
    place = [0] * ranks if servers is None else [int(server) for server in servers]
    _check(orders, place, ports, (type_intra, type_inter), findings)
    findings.raise_if_any()
    device = [place[:rank].count(place[rank]) for rank in range(ranks)]
    channels: dict[int, list[RingChannel]] = {server: [] for server in sorted(set(place))}
    for number, order in enumerate(orders):
        stretches = _stretches(list(order), place, number, findings)
        for server, members in stretches.items():
            gpus = tuple((device[rank], rank) for rank in members)
            ends = (None, None) if ports is None or len(channels) == 1 else (ports[members[0]], ports[members[-1]])
            channels[server].append(RingChannel(gpus, *ends))
    findings.raise_if_any()
    outside = speed_intra if speed_inter is None else speed_inter
    return [RingGraph(tuple(own), speed_intra, outside, type_intra, type_inter) for own in channels.values()]


def _check(
    orders: Sequence[Sequence[int]], place: Sequence[int], ports: Sequence[int] | None, types: tuple[str, str],
    findings: Findings,
) -> None:  # fmt: skip
    ranks = len(place)
    if not 1 <= len(orders) <= MOST_CHANNELS:
        findings.add(f"there are {len(orders)} rings: give 1 to {MOST_CHANNELS}, one for each channel")
    for number, order in enumerate(orders):
        if sorted(order) != list(range(ranks)):
            findings.add(f"ring {number} visits {list(order)[:8]}: visit each rank 0…{ranks - 1} once")
    if len(set(place)) > 1 and (ports is None or len(ports) != ranks):
        findings.add("rings between servers leave through ports: give the port of every rank")
    for kind in types:
        if kind not in LINK_TYPES:
            findings.add(f"the link type {kind!r} is unknown: use one of {', '.join(LINK_TYPES)}")


def _stretches(order: list[int], place: list[int], number: int, findings: Findings) -> dict[int, list[int]]:
    """The ranks that a ring visits in each server, in one stretch each and servers in ascending order."""
    servers = sorted(set(place))
    if len(servers) == 1:
        return {servers[0]: order}
    first = next(
        (at for at in range(len(order)) if place[order[at]] == servers[0] != place[order[at - 1]]), 0
    )  # fmt: skip
    turned = order[first:] + order[:first]
    stretches: dict[int, list[int]] = {server: [] for server in servers}
    passed: list[int] = []
    for rank in turned:
        if not passed or passed[-1] != place[rank]:
            passed.append(place[rank])
        stretches[place[rank]].append(rank)
    if passed != servers:
        findings.add(
            f"ring {number} visits servers in the order {passed[:12]}: NCCL passes every server once, in ascending "
            "order; number the servers accordingly, or export an MSCCL++ plan"
        )
    return stretches


def write_ring_graphs(graphs: Sequence[RingGraph], path: str | Path) -> list[Path]:
    """Write FILE for one server, or FILE with the number of the server before its ending for each of several."""
    target = Path(path)
    several = len(graphs) > 1
    paths = [target.with_suffix(f".{n}{target.suffix}") if several else target for n in range(len(graphs))]
    write_together({one: graph.to_xml().encode() for one, graph in zip(paths, graphs, strict=True)})
    return paths


def read_ring_graph(path: str | Path) -> RingGraph:
    """The rings of a graph file; graphs of other algorithms in it are passed over."""
    findings = Findings(ProgramError, f"NCCL graph {path}")
    top = read_xml(Path(path), findings.subject, ProgramError)
    if top.name != "graphs" or top.attributes.get("version") != "1":
        findings.add(f'line {top.line}: begins with <{top.name}>: give a file with <graphs version="1">')
        findings.raise_if_any()
    for graph in top.all("graph"):
        if whole_of(graph, "pattern", findings) == RING_PATTERN:
            found = _graph(graph, findings)
            findings.raise_if_any()
            return found
    findings.add(f"line {top.line}: holds no ring (pattern {RING_PATTERN}): dump it with NCCL_GRAPH_DUMP_FILE")
    findings.raise_if_any()
    raise AssertionError("there are findings")


def _graph(graph: Element, findings: Findings) -> RingGraph:
    channels = tuple(_channel(channel, findings) for channel in graph.all("channel"))
    if whole_of(graph, "nchannels", findings) != len(channels):
        findings.add(f"line {graph.line}: nchannels is not the number of <channel> elements, {len(channels)}")
    speeds = []
    for name in ("speedintra", "speedinter"):
        text = text_of(graph, name, findings) or "0"
        try:
            speeds.append(finite(text))
        except ValueError:
            findings.add(f"line {graph.line}: {name} is {text[:20]!r}: write GB/s, such as 20")
            speeds.append(0.0)
    types = [text_of(graph, name, findings) or "" for name in ("typeintra", "typeinter")]
    return RingGraph(channels, speeds[0], speeds[1], types[0], types[1])


def _channel(channel: Element, findings: Findings) -> RingChannel:
    gpus: list[tuple[int, int]] = []
    ends: list[tuple[int, int]] = []
    for element in channel.inside:
        device = _hexadecimal(element, findings)
        if element.name == "net":
            ends.append((len(gpus), device))
        elif element.name == "gpu":
            gpus.append((device, whole_of(element, "rank", findings, default=device)))
        else:
            findings.add(f"line {element.line}: <{element.name}> in a channel is unknown: use gpu and net")
    if ends and [place for place, _ in ends] != [0, len(gpus)]:
        findings.add(f"line {channel.line}: a ring begins and ends with a <net>, or has none: fix the channel")
        ends = []
    enters, leaves = (ends[0][1], ends[1][1]) if ends else (None, None)
    return RingChannel(tuple(gpus), enters, leaves)


def _hexadecimal(element: Element, findings: Findings) -> int:
    """NCCL reads devices as hexadecimal, with or without 0x."""
    text = text_of(element, "dev", findings) or "0"
    try:
        return int(text, 16)
    except ValueError:
        findings.add(f"line {element.line}: dev is {text[:20]!r}: write a hexadecimal number such as 0x3")
        return 0


def orders_of(graphs: Sequence[RingGraph]) -> list[list[int]]:
    """The whole rings, from the files of all servers in ascending order: channel by channel, one server on the next."""
    counts = {len(graph.channels) for graph in graphs}
    if len(counts) != 1:
        raise ProgramError(
            f"the files have {sorted(counts)} channels: give files of the same rings, one for each server"
        )
    return [
        [rank for graph in graphs for rank in graph.channels[number].ranks] for number in range(len(graphs[0].channels))
    ]
