"""Servers of GPUs on any network: a fast switch inside each server, its NICs on the ports of a fabric outside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric.fabric import Builder, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, speeds


@dataclass(frozen=True)
class Network:
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
class Cluster:
    """GPUs in servers; the hosts of `network` are the ports that the NICs of the servers are plugged into.

    GPU g of server s is node s*gpus_per_server + g and uses NIC g*nics // gpus_per_server of its server; the last
    server may be only partly filled. Where every GPU has a NIC of its own and ports do not forward for others, the GPU
    itself is at the port. Otherwise NICs are nodes of their own: GPUs that share one meet there, and in a network whose
    hosts forward (a torus) NICs forward, never GPUs. Ports without a NIC are nodes named `spare`.

    Links: GPU g to its NVSwitch is 2g, back is 2g + 1; then, where NICs are nodes, GPU to NIC the same way; then the
    links of the network in their own order. A server of one GPU has no NVSwitch.

    >>> from ropewalk.fabric.leaf_spine import LeafSpine
    >>> Cluster(LeafSpine(4, 4, 4), gpus=16, nvlink_bandwidth=300e9).build().server.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    """

    network: Builder
    gpus: int
    nvlink_bandwidth: float
    """Bytes/s from a GPU to the switch inside its server, one direction."""
    gpus_per_server: int = 8
    nics_per_server: int | None = None
    """One for each GPU unless given."""
    rails: bool = False
    """Ports are taken NIC by NIC, not server by server: NIC i of all servers is on one leaf where that has room."""
    nvlink_latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("cluster")
        at_least(findings, 1, gpus=self.gpus, gpus_per_server=self.gpus_per_server, nics_per_server=self.nics)
        if not findings and self.gpus_per_server % self.nics:
            findings.add(
                f"{self.gpus_per_server} GPUs of a server do not spread evenly over {self.nics} NICs: "
                f"give a divisor of {self.gpus_per_server}"
            )
        if not findings and self.network.hosts < self.servers * self.nics:
            findings.add(
                f"{self.network.expression} has {self.network.hosts} ports, but {self.servers} servers with "
                f"{self.nics} NICs each need {self.servers * self.nics}: "
                "take a larger network or fewer NICs per server"
            )
        speeds(findings, self.nvlink_latency, nvlink_bandwidth=self.nvlink_bandwidth)
        findings.raise_if_any()
        if self.nics_per_server == self.gpus_per_server:
            object.__setattr__(self, "nics_per_server", None)  # one spelling, so that equal clusters are equal

    @property
    def nics(self) -> int:
        return self.gpus_per_server if self.nics_per_server is None else self.nics_per_server

    @property
    def servers(self) -> int:
        return -(-self.gpus // self.gpus_per_server)

    @property
    def hosts(self) -> int:
        return self.gpus

    @property
    def bandwidth(self) -> float:
        """Bytes/s of a NIC, one direction."""
        return self.network.bandwidth

    @property
    def expression(self) -> str:
        """For people to read: no expression holds a whole cluster, `servers.cluster` builds one from its parts."""
        wiring = " by rail" if self.rails else ""
        shared = "" if self.nics == self.gpus_per_server else f" and {self.nics} NICs"
        return f"{self.gpus} gpus, {self.gpus_per_server}{shared} a server,{wiring} on {self.network.expression}"

    @property
    def has_nvlink(self) -> bool:
        return self.gpus_per_server > 1

    def server_of(self) -> NDArray[np.int32]:
        """The server of every GPU."""
        return (np.arange(self.gpus) // self.gpus_per_server).astype(np.int32)

    def port_of(self) -> NDArray[np.int64]:
        """The host of the network at which every GPU enters and leaves it."""
        server, place = np.divmod(np.arange(self.gpus, dtype=np.int64), self.gpus_per_server)
        nic = place * self.nics // self.gpus_per_server
        return nic * self.servers + server if self.rails else server * self.nics + nic

    def at_the_port(self, network: Fabric) -> bool:
        """Is the GPU itself at its port? Otherwise a NIC between them is a node of its own."""
        links = np.bincount(network.link_src, minlength=network.nodes)[: network.hosts]
        return self.nics == self.gpus_per_server and bool((links <= 1).all())

    def first_network_link(self, network: Fabric) -> int:
        """The link of the cluster that is link 0 of the network."""
        return 2 * self.gpus * (int(self.has_nvlink) + int(not self.at_the_port(network)))

    def build(self) -> Fabric:
        network = self.network.build()
        draft = FabricDraft(self.expression)
        server, port = self.server_of(), self.port_of()
        place = np.arange(self.gpus) % self.gpus_per_server
        gpus = draft.add_hosts([f"gpu{s}.{g}" for s, g in zip(server.tolist(), place.tolist(), strict=True)])
        if self.has_nvlink:
            nvswitches = draft.add_switches(numbered("nvswitch", self.servers), level=1)
            draft.add_links(gpus, nvswitches[server], self.nvlink_bandwidth, self.nvlink_latency)
        node = np.full(network.nodes, -1, np.int32)
        if self.at_the_port(network):
            node[port] = gpus
        spare = np.flatnonzero(node[: network.hosts] < 0)
        node[spare] = draft.add_switches(self._port_names(spare), level=1)
        if not self.at_the_port(network):
            # A GPU alone can keep its NIC busy: what NICs lack in speed is a matter of the network.
            draft.add_links(gpus, node[port], network.host_bandwidth()[port])
        for level in np.unique(network.level[network.hosts :]).tolist():
            at = network.hosts + np.flatnonzero(network.level[network.hosts :] == level)
            node[at] = draft.add_switches([network.node_names[n] for n in at.tolist()], level=level + 1)
        ends = node[network.link_src], node[network.link_dst]
        draft.add_links(*ends, network.bandwidth, network.latency, network.cables, duplex=False)
        return draft.freeze(self, server=server)

    def _port_names(self, ports: NDArray[np.int64]) -> list[str]:
        """Names of the ports that are nodes of their own: NICs, then ports without one."""
        used = self.servers * self.nics
        if self.rails:
            server, nic = ports % self.servers, ports // self.servers
        else:
            server, nic = ports // self.nics, ports % self.nics
        return [
            f"nic{s}.{n}" if port < used else f"spare{port - used}"
            for port, s, n in zip(ports.tolist(), server.tolist(), nic.tolist(), strict=True)
        ]
