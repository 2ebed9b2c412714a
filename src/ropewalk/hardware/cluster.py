"""A cluster, described once: servers of GPUs and NICs, and the network between them or the ports to be wired."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property

from ropewalk import units
from ropewalk.device.held import device_in_words
from ropewalk.errors import ClusterError, Findings
from ropewalk.fabric import Fabric
from ropewalk.fabric.server_fabric import FileFabric, ServerFabric, ServerGroup
from ropewalk.fabric.servers import server_fabric
from ropewalk.fabric.wiring import Wiring
from ropewalk.hardware.failed import without

DEFAULT_DEVICE = "h200"
DEFAULT_NETWORK = "leaf-spine"
MOST_GPUS = 1 << 20

_SERVER = re.compile(r"server([0-9]{1,6})")
_GPU = re.compile(r"gpu([0-9]{1,6})\.([0-9]{1,6})")


@dataclass(frozen=True)
class Servers:
    """A group of equal servers; bytes/s are for one direction."""

    count: int
    gpus: int
    """Of one server."""
    device: str
    """The GPU: a name of the device table, or a table that `ropewalk profile` wrote."""
    nvlink_bandwidth: float
    """Of one GPU to all others of its server together."""
    nics: int
    """Of one server; where ports are to be wired, its ports."""
    nic_bandwidth: float


@dataclass(frozen=True)
class Ports:
    """A network that is still to be wired: every server brings ports, `ropewalk plan` joins them."""

    degree: int
    """Ports of a server."""
    duplex: bool = True
    """A cable carries both directions; otherwise a port sends to one server and receives from another."""
    single_panel: bool = False
    """All ports end on one large panel, where any two can be joined; otherwise port i of every server is on panel i."""
    prices: str = "mixnet"


@dataclass(frozen=True)
class Cluster:
    """Where training runs. `read_cluster` makes one from a file, a preset, a shape or options.

    >>> servers = Servers(2, 8, "h100", nvlink_bandwidth=450e9, nics=8, nic_bandwidth=50e9)
    >>> cluster = Cluster((servers,))
    >>> cluster.gpus, cluster.fabric().name
    (16, '16 GPUs, 8 per server, on leaf-spine:4x4x4')
    """

    servers: tuple[Servers, ...]
    network: str | Ports = DEFAULT_NETWORK
    """A family, a fabric expression or a fabric file; or ports that are to be wired."""
    latency_s: float | None = None
    """Of every link of the network; as the network has it unless given."""
    rails: bool = False
    """Rail-optimised: NIC i of every server connects to the same leaf."""
    failed: tuple[str, ...] = ()
    """Servers (`server3`), GPUs, NICs and switches by name, links as `leaf0-spine1` or `leaf0->spine1`."""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, "cluster")
        for problem in problems(self.servers, self.network, self.latency_s, self.failed):
            findings.add(problem)
        findings.raise_if_any()

    @property
    def gpus(self) -> int:
        """GPUs that work."""
        return sum(self.server_sizes)

    @property
    def server_sizes(self) -> tuple[int, ...]:
        """Working GPUs of every server that has any."""
        lost = Counter(server for server, _ in _lost_gpus(self.servers, self.failed))
        return tuple(size - lost[server] for server, size in enumerate(_sizes(self.servers)) if size > lost[server])

    @property
    def device(self) -> str:
        """The GPU of all servers."""
        kinds = dict.fromkeys(group.device for group in self.servers)
        if len(kinds) > 1:
            raise ClusterError(
                f"cluster: its servers hold different GPUs ({', '.join(kinds)}): a step is priced for one kind of GPU: "
                f"name servers of one kind only"
            )
        return self.servers[0].device

    @property
    def equal(self) -> Servers:
        """All servers as one group, where they are alike and complete."""
        kinds = {(one.gpus, one.device, one.nvlink_bandwidth, one.nics, one.nic_bandwidth) for one in self.servers}
        if len(kinds) > 1 or self.gpus != sum(_sizes(self.servers)):
            sizes = ", ".join(map(str, self.server_sizes))
            raise ClusterError(
                f"cluster: its servers differ (GPUs of each: {sizes}), but this needs equal servers: "
                "give equal ones, such as 4x8"
            )
        first = self.servers[0]
        count = sum(one.count for one in self.servers)
        return Servers(count, first.gpus, first.device, first.nvlink_bandwidth, first.nics, first.nic_bandwidth)

    @property
    def ports(self) -> Ports:
        """The ports to be wired."""
        if not isinstance(self.network, Ports):
            raise ClusterError(
                f"cluster: its network is {self.network}, so there are no ports to wire: describe ports instead, "
                "such as "
                "ports: {degree: 4}"
            )
        return self.network

    def uneven(self, batch: int | None) -> str | None:
        """Why samples of a batch, where one is given, cannot go to all GPUs alike; None where they can."""
        if batch is None or (batch >= 1 and batch % self.gpus == 0):
            return None
        nearest = max(1, round(batch / self.gpus)) * self.gpus
        return (
            f"a batch of {batch} samples does not divide evenly over {self.gpus} GPUs: give a multiple of {self.gpus}, "
            f"such as {nearest}"
        )

    def fabric(self) -> Fabric:
        """The fabric whose hosts are the GPUs, without what has failed."""
        return self._fabric

    @cached_property
    def _fabric(self) -> Fabric:
        if isinstance(self.network, Ports):
            raise ClusterError(
                f"cluster: {self.network.degree} ports per server are still unwired: plan the wiring with "
                "`ropewalk plan` (`ropewalk export PLAN --to fabric` writes that of a plan, for --fabric and another "
                "--cluster), or describe a network such as leaf-spine in their place"
            )
        groups = tuple(
            ServerGroup(one.count, one.gpus, one.nvlink_bandwidth, one.nics, one.nic_bandwidth) for one in self.servers
        )
        whole = server_fabric(self.network, groups, latency=self.latency_s, rails=self.rails)
        return without(whole, self.failed) if self.failed else whole

    def wired(self, wiring: Wiring) -> Fabric:
        """The fabric whose hosts are the GPUs, where the ports of the servers are joined by these cables.

        The ports of a server act as one: each of its GPUs reaches all of them, and they forward for other servers.

        >>> ring = Wiring(3, 2, True, 25e9, 0.0, (), ((0, 1, 1), (1, 2, 1), (0, 2, 1)), 2, 0)
        >>> fabric = Cluster((Servers(3, 8, "h100", 450e9, 2, 25e9),), Ports(2)).wired(ring)
        >>> fabric.hosts, fabric.switches
        (24, 6)
        """
        servers = self.equal
        if wiring.servers != servers.count:
            raise ClusterError(
                f"cluster: a wiring of {wiring.servers} servers does not fit {servers.count} servers: wire these "
                "servers again"
            )
        between = wiring.fabric()
        if servers.gpus == 1:
            return between
        group = ServerGroup(servers.count, servers.gpus, servers.nvlink_bandwidth, nics=1)
        return ServerFabric(FileFabric(between), (group,)).build()

    def at_bandwidth(self, nic_bandwidth: float) -> Cluster:
        """The same cluster with NICs of another speed (bytes/s, one direction)."""
        return replace(self, servers=tuple(replace(one, nic_bandwidth=nic_bandwidth) for one in self.servers))

    @property
    def shape(self) -> str:
        """Servers x GPUs of each: `4x8`, `2x8,1x4`."""
        return ",".join(f"{one.count}x{one.gpus}" for one in self.servers)

    @property
    def said(self) -> str:
        """In a few words.

        >>> Cluster((Servers(4, 8, "a100", 300e9, 8, 25e9),)).said
        '4x8 a100, 8 NICs of 200 Gbps per server, on leaf-spine'
        """
        parts = [
            f"{one.count}x{one.gpus} {device_in_words(one.device)}, {one.nics} {'NIC' if one.nics == 1 else 'NICs'} of "
            f"{units.show_bandwidth(one.nic_bandwidth)} per server"
            for one in self.servers
        ]
        if isinstance(self.network, Ports):
            return f"{' and '.join(parts)}, {self.network.degree} ports per server to be wired"
        rails = " by rail" if self.rails else ""
        lost = f", without {', '.join(self.failed)}" if self.failed else ""
        return f"{' and '.join(parts)},{rails} on {self.network}{lost}"


def problems(
    servers: tuple[Servers, ...], network: str | Ports, latency_s: float | None, failed: tuple[str, ...]
) -> Iterator[str]:
    """Everything that is wrong with such a cluster, each with a remedy."""
    if not servers:
        yield "there are no servers: give at least one group"
    for number, group in enumerate(servers):
        where = f"servers[{number}]: " if len(servers) > 1 else ""
        yield from (f"{where}{problem}" for problem in _problems_of_group(group, isinstance(network, Ports)))
    total = sum(max(0, one.count) * max(0, one.gpus) for one in servers)
    if total > MOST_GPUS:
        yield f"{total} GPUs are more than the limit of {MOST_GPUS}: ask for fewer GPUs"
    if isinstance(network, Ports):
        yield from _problems_of_ports(servers, network)
    elif not network:
        yield f"network is empty: name one, such as {DEFAULT_NETWORK}"
    if latency_s is not None and not (math.isfinite(latency_s) and latency_s >= 0):
        yield f"latency must be 0 s or more, got {latency_s:g} s: write it like 1us"
    if 0 < total <= MOST_GPUS and failed:
        yield from _problems_of_failed(servers, failed)


def _problems_of_group(group: Servers, to_be_wired: bool) -> Iterator[str]:
    for name, value in (("count", group.count), ("gpus", group.gpus), ("nics", group.nics)):
        if value < 1:
            yield f"{name} is {value}: give 1 or more"
    if group.gpus > 0 and group.nics > 0 and group.gpus % group.nics and not to_be_wired:
        divisors = [str(number) for number in range(1, group.gpus + 1) if group.gpus % number == 0]
        yield (
            f"{group.gpus} GPUs of a server do not divide evenly over {group.nics} NICs: "
            f"give {' or '.join((', '.join(divisors[:-1]), divisors[-1]) if len(divisors) > 1 else divisors)} NICs"
        )
    for name in ("nvlink_bandwidth", "nic_bandwidth"):
        speed = getattr(group, name)
        if not (math.isfinite(speed) and speed > 0):
            yield f"{name} must be above 0, got {speed:g} bytes/s: write it like 400Gbps or 50GB/s"


def _problems_of_ports(servers: tuple[Servers, ...], ports: Ports) -> Iterator[str]:
    if ports.degree < 1:
        yield f"ports: degree is {ports.degree}: give 1 or more"
    for group in servers:
        if group.nics != ports.degree:
            yield (
                f"ports: degree is {ports.degree}, but servers have {group.nics} NICs: every NIC is a port, "
                "leave out one of the two"
            )


def _problems_of_failed(servers: tuple[Servers, ...], failed: tuple[str, ...]) -> Iterator[str]:
    sizes = _sizes(servers)
    for name, times in Counter(failed).items():
        if times > 1:
            yield f"failed: {name} is listed {times} times: list it once"
    known = {f"server{number}" for number in range(len(sizes))}
    known |= {f"gpu{server}.{gpu}" for server, size in enumerate(sizes) for gpu in range(size)}
    for name in failed:
        if (_SERVER.fullmatch(name) or _GPU.fullmatch(name)) and name not in known:
            near = get_close_matches(name, known, n=3)
            hint = f"similar names: {', '.join(near)}" if near else f"servers are server0 to server{len(sizes) - 1}"
            yield f"failed: there is no {name}: {hint}"
    if len(_lost_gpus(servers, failed)) == sum(sizes):
        yield "failed: every GPU has failed: list fewer parts"


def lost_parts_of_network(failed: tuple[str, ...]) -> list[str]:
    """Of what has failed, the parts that are neither servers nor GPUs.

    >>> lost_parts_of_network(("server3", "leaf0-spine1"))
    ['leaf0-spine1']
    """
    return [name for name in failed if not (_SERVER.fullmatch(name) or _GPU.fullmatch(name))]


def _sizes(servers: tuple[Servers, ...]) -> list[int]:
    """GPUs of every server."""
    return [group.gpus for group in servers for _ in range(group.count)]


def _lost_gpus(servers: tuple[Servers, ...], failed: tuple[str, ...]) -> set[tuple[int, int]]:
    """(server, GPU) of what has failed."""
    sizes = _sizes(servers)
    lost: set[tuple[int, int]] = set()
    for name in failed:
        server, gpu = _SERVER.fullmatch(name), _GPU.fullmatch(name)
        if server and int(server[1]) < len(sizes):
            lost |= {(int(server[1]), number) for number in range(sizes[int(server[1])])}
        elif gpu and int(gpu[1]) < len(sizes) and int(gpu[2]) < sizes[int(gpu[1])]:
            lost.add((int(gpu[1]), int(gpu[2])))
    return lost
