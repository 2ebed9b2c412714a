"""Servers of GPUs on any network: a fast switch inside each server, its NICs on the ports of a fabric outside."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric.fabric import Builder, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, speeds


@dataclass(frozen=True)
class FileFabric:
    """A fabric that was read from a file, standing where a builder stands."""

    fabric: Fabric

    @property
    def expression(self) -> str:
        return self.fabric.name

    @property
    def hosts(self) -> int:
        return self.fabric.hosts

    @property
    def bandwidth(self) -> float:
        return float(self.fabric.host_bandwidth().min())

    def build(self) -> Fabric:
        return self.fabric


@dataclass(frozen=True)
class ServerGroup:
    """Equal servers; bytes/s are for one direction."""

    count: int
    gpus: int
    nvlink_bandwidth: float
    """From a GPU to the switch inside its server."""
    nics: int | None = None
    """One for each GPU unless given."""
    nic_bandwidth: float | None = None
    """The most that a NIC carries; what its port of the network has unless given."""

    def __post_init__(self) -> None:
        findings = findings_of("servers")
        at_least(findings, 1, servers=self.count, gpus_per_server=self.gpus, nics_per_server=self.nics_each)
        if not findings and self.gpus % self.nics_each:
            findings.add(
                f"{self.gpus} GPUs of a server do not divide evenly over {self.nics_each} NICs: "
                f"give a divisor of {self.gpus}"
            )
        speeds(findings, 0.0, nvlink_bandwidth=self.nvlink_bandwidth)
        if self.nic_bandwidth is not None:
            speeds(findings, 0.0, nic_bandwidth=self.nic_bandwidth)
        findings.raise_if_any()
        if self.nics == self.gpus:
            object.__setattr__(self, "nics", None)  # one spelling, so that equal groups are equal

    @property
    def nics_each(self) -> int:
        return self.gpus if self.nics is None else self.nics


def filled(gpus: int, group: ServerGroup) -> tuple[ServerGroup, ...]:
    """As many servers like those of `group` as these GPUs need; the last may hold fewer, with fewer NICs.

    >>> [(one.count, one.gpus, one.nics_each) for one in filled(20, ServerGroup(1, 8, 300e9, nics=4))]
    [(2, 8, 4), (1, 4, 2)]
    """
    full, rest = divmod(gpus, group.gpus)
    groups = [replace(group, count=full)] if full else []
    if rest:
        needed = -(-rest * group.nics_each // group.gpus)
        nics = max(number for number in range(1, needed + 1) if rest % number == 0)
        groups.append(replace(group, count=1, gpus=rest, nics=nics))
    return tuple(groups)


@dataclass(frozen=True)
class ServerFabric:
    """GPUs in servers; the hosts of `network` are the ports that the NICs of the servers are plugged into.

    GPUs are numbered server by server; GPU g of a server uses NIC g*nics // gpus of it. Where every GPU has a NIC of
    its own and ports do not forward for others, the GPU itself is at the port. Otherwise NICs are nodes of their own:
    GPUs that share one meet there, and in a network whose hosts forward (a torus) NICs forward, never GPUs. Ports
    without a NIC are nodes named `spare`.

    Links: GPU g to its NVSwitch is 2g, back is 2g + 1; then, where NICs are nodes, GPU to NIC the same way; then the
    links of the network in their own order. Where every server has one GPU, there are no NVSwitches.

    >>> from ropewalk.fabric.leaf_spine import LeafSpine
    >>> ServerFabric(LeafSpine(4, 3, 4), (ServerGroup(1, 8, 300e9), ServerGroup(1, 4, 300e9))).build().server.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    """

    network: Builder
    groups: tuple[ServerGroup, ...]
    rails: bool = False
    """Ports are taken NIC by NIC, not server by server: NIC i of all servers is on one leaf where that has room."""
    nvlink_latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("servers")
        if not self.groups:
            findings.add("there are no servers: give at least one group")
        elif self.network.hosts < self.ports:
            most = max(group.nics_each for group in self.groups)
            equal = self.rails or self.ports == self.servers * most
            have = f"{self.servers} servers with {most} NICs each need" if equal else "the NICs of all servers need"
            family, numbers, _ = self.network.expression.partition(":")
            alone = f", or {family} without numbers, which is as large as needed" if numbers else ""
            findings.add(
                f"{self.network.expression} has {self.network.hosts} ports, but {have} {self.ports}: "
                f"use a larger network or fewer NICs per server{alone}"
            )
        speeds(findings, self.nvlink_latency)
        findings.raise_if_any()

    @property
    def servers(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def gpus(self) -> int:
        return sum(group.count * group.gpus for group in self.groups)

    @property
    def hosts(self) -> int:
        return self.gpus

    @property
    def ports(self) -> int:
        """Hosts of the network that are taken: by every NIC, or with rails by each NIC number of every server."""
        return ports_of(self.groups, self.rails)

    @property
    def bandwidth(self) -> float:
        """Bytes/s of a NIC, one direction; of the slowest where they differ."""
        own = [group.nic_bandwidth for group in self.groups if group.nic_bandwidth is not None]
        return min(self.network.bandwidth, *own) if own else self.network.bandwidth

    @property
    def expression(self) -> str:
        """For people to read: no expression holds a whole cluster."""
        wiring = " by rail" if self.rails else ""
        if len(self.groups) == 1:
            (group,) = self.groups
            shared = "" if group.nics is None else f" with {_nics(group.nics)}"
            return f"{self.gpus} GPUs, {group.gpus} per server{shared},{wiring} on {self.network.expression}"
        parts = [
            f"{one.count}x{one.gpus}" + ("" if one.nics is None else f" with {_nics(one.nics)}") for one in self.groups
        ]
        return f"{self.gpus} GPUs, servers {' and '.join(parts)},{wiring} on {self.network.expression}"

    @property
    def has_nvlink(self) -> bool:
        return any(group.gpus > 1 for group in self.groups)

    def gpus_of_server(self) -> NDArray[np.int64]:
        return self._each([group.gpus for group in self.groups])

    def nics_of_server(self) -> NDArray[np.int64]:
        return self._each([group.nics_each for group in self.groups])

    def _each(self, values: list[int]) -> NDArray[np.int64]:
        """A value of every group, once for each of its servers."""
        return np.repeat(np.array(values, np.int64), [group.count for group in self.groups])

    def server_of(self) -> NDArray[np.int32]:
        """The server of every GPU."""
        return np.repeat(np.arange(self.servers, dtype=np.int32), self.gpus_of_server())

    def place_of(self) -> NDArray[np.int64]:
        """The number of every GPU inside its server."""
        sizes = self.gpus_of_server()
        return np.arange(self.gpus) - np.repeat(np.cumsum(sizes) - sizes, sizes)

    def port_of(self) -> NDArray[np.int64]:
        """The host of the network at which every GPU enters and leaves it."""
        server, nics = self.server_of(), self.nics_of_server()
        nic = self.place_of() * nics[server] // self.gpus_of_server()[server]
        return nic * self.servers + server if self.rails else (np.cumsum(nics) - nics)[server] + nic

    def at_the_port(self, network: Fabric) -> bool:
        """Is the GPU itself at its port? Otherwise a NIC between them is a node of its own."""
        links = np.bincount(network.link_src, minlength=network.nodes)[: network.hosts]
        return all(group.nics is None for group in self.groups) and bool((links <= 1).all())

    def first_network_link(self, network: Fabric) -> int:
        """The link of this fabric that is link 0 of the network."""
        return 2 * self.gpus * (int(self.has_nvlink) + int(not self.at_the_port(network)))

    def build(self) -> Fabric:
        network = self.network.build()
        draft = FabricDraft(self.expression)
        server, port = self.server_of(), self.port_of()
        names = zip(server.tolist(), self.place_of().tolist(), strict=True)
        gpus = draft.add_hosts([f"gpu{s}.{g}" for s, g in names])
        if self.has_nvlink:
            nvswitches = draft.add_switches(numbered("nvswitch", self.servers), level=1)
            inside = np.repeat([g.nvlink_bandwidth for g in self.groups], [g.count * g.gpus for g in self.groups])
            draft.add_links(gpus, nvswitches[server], inside, self.nvlink_latency)
        node = np.full(network.nodes, -1, np.int32)
        if self.at_the_port(network):
            node[port] = gpus
        spare = np.flatnonzero(node[: network.hosts] < 0)
        node[spare] = draft.add_switches(self._port_names(spare), level=1)
        speed = self._speeds_at_ports(network, port)
        if not self.at_the_port(network):
            # A GPU alone can keep its NIC busy: what NICs lack in speed is a matter of the network.
            reached = np.bincount(network.link_src, weights=speed, minlength=network.nodes)
            draft.add_links(gpus, node[port], reached[port])
        for level in np.unique(network.level[network.hosts :]).tolist():
            at = network.hosts + np.flatnonzero(network.level[network.hosts :] == level)
            node[at] = draft.add_switches([network.node_names[n] for n in at.tolist()], level=level + 1)
        ends = node[network.link_src], node[network.link_dst]
        draft.add_links(*ends, speed, network.latency, network.cables, duplex=False)
        return draft.freeze(self, server=server)

    def _speeds_at_ports(self, network: Fabric, port: NDArray[np.int64]) -> NDArray[np.float64]:
        """Bytes/s of the links of the network: at a port, at most what its NIC carries."""
        most = np.full(network.nodes, np.inf)
        each = [np.inf if group.nic_bandwidth is None else group.nic_bandwidth for group in self.groups]
        most[port] = np.repeat(each, [group.count * group.gpus for group in self.groups])
        speed = np.minimum(network.bandwidth, np.minimum(most[network.link_src], most[network.link_dst]))
        return np.asarray(speed, np.float64)

    def _port_names(self, ports: NDArray[np.int64]) -> list[str]:
        """Names of the ports that are nodes of their own: NICs, then ports without one."""
        nics = self.nics_of_server()
        if self.rails:
            server, nic = ports % self.servers, ports // self.servers
            has_nic = nic < nics[server]
        else:
            first = np.cumsum(nics) - nics
            server = np.searchsorted(first, ports, side="right") - 1
            nic = ports - first[server]
            has_nic = nic < nics[server]
        spare = np.cumsum(~has_nic) - 1
        return [
            f"nic{s}.{n}" if plugged else f"spare{number}"
            for s, n, plugged, number in zip(*(x.tolist() for x in (server, nic, has_nic, spare)), strict=True)
        ]


def _nics(count: int) -> str:
    return f"{count} NIC{'s' * (count != 1)}"


def ports_of(groups: tuple[ServerGroup, ...], rails: bool) -> int:
    """Ports that a network needs for these servers."""
    if rails:
        return sum(group.count for group in groups) * max(group.nics_each for group in groups)
    return sum(group.count * group.nics_each for group in groups)
