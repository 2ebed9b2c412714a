"""Other networks for the same servers, by name: `leaf-spine:2to1`, `rails`, `rail-only`, `torus`, `wire:8x400Gbps`.

Servers, GPUs and the bandwidth of their NICs stay; what joins them is another.

>>> from ropewalk.hardware.read import read_cluster
>>> pod = read_cluster("dgx-h100:16")
>>> [on_network(pod, name).said.rpartition(" on ")[2] for name in ("rails:2to1", "fat-tree:2to1", "torus")]
['leaf-spine:2to1', 'fat-tree:2to1', 'torus:4x4']
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ropewalk import units
from ropewalk.choices import Choice, Choices
from ropewalk.errors import ClusterError, InputError
from ropewalk.fabric import Builder
from ropewalk.fabric.expression import builder, has_open_size, is_path
from ropewalk.fabric.families import FAMILIES
from ropewalk.fabric.rails import RAIL_ONLY
from ropewalk.fabric.servers import WHOLE_SERVERS
from ropewalk.hardware.cluster import Cluster, Ports, lost_parts_of_network
from ropewalk.hardware.complete import RAILS, outside_of

OWN = "own"
_WIRE = re.compile(r"([0-9]{1,4})(?:x(.+))?")


@dataclass(frozen=True)
class NetworkChoice(Choice[Callable[[Cluster, str], Cluster]]):
    """A network for the servers of a cluster; `make` takes the cluster and what stands behind the colon."""

    usage: str = ""
    """How it is written with all its parts."""

    def facts(self) -> dict[str, str]:
        return {"written as": self.usage or self.name, "where it applies": self.where}


def on_network(cluster: Cluster, text: str) -> Cluster:
    """The servers of a cluster on the network that this names; one that does not fit them is refused with a remedy."""
    written = text.strip()
    name, _, rest = written.partition(":")
    if not is_path(written) and name not in NETWORKS:
        raise ClusterError(NETWORKS.unknown(name, also=["a fabric file"]))
    if cluster.failed and written != OWN:
        _refuse_lost_switches(cluster, written)
    try:
        found = _switched(cluster, written) if is_path(written) else NETWORKS[name].make(cluster, rest)
        if not isinstance(found.network, Ports):
            found.fabric()
    except InputError as problem:
        raise ClusterError(f"network {written}: {problem}") from problem
    return found


def resized(cluster: Cluster, servers: int) -> Cluster:
    """The same cluster with another number of its servers; a network whose size is open grows and shrinks with them.

    >>> from ropewalk.hardware.read import read_cluster
    >>> resized(read_cluster("dgx-h100:16"), 4).gpus
    32
    """
    network = cluster.network
    if cluster.failed:
        raise ClusterError(
            f"cluster: {', '.join(cluster.failed)} failed, so its servers differ: remove the failed parts"
        )
    if isinstance(network, str) and (is_path(network) or not has_open_size(network)) and outside_of(network).sizes:
        raise ClusterError(
            f"cluster: {network} is a cluster of its own: name servers and their network, such as 16x8 and rails"
        )
    return replace(cluster, servers=(replace(cluster.equal, count=servers),))


def _refuse_lost_switches(cluster: Cluster, text: str) -> None:
    lost = lost_parts_of_network(cluster.failed)
    if lost:
        raise ClusterError(
            f"network {text}: {', '.join(lost)} failed in the network that it replaces: remove failed switches and "
            f"cables from the cluster, or plan for {OWN} alone"
        )


def _own(cluster: Cluster, rest: str) -> Cluster:
    _nothing_behind(OWN, rest)
    return cluster


def _switched(cluster: Cluster, network: str, *, rails: bool = False) -> Cluster:
    """Every NIC on a port of the network."""
    return replace(cluster, network=network, rails=rails)


def _tree(family: str) -> Callable[[Cluster, str], Cluster]:
    return lambda cluster, rest: _switched(cluster, f"{family}:{rest}" if rest else family)


def _by_rail(cluster: Cluster, rest: str) -> Cluster:
    return _switched(cluster, f"leaf-spine:{rest}" if rest else "leaf-spine", rails=True)


def _rail_only(cluster: Cluster, rest: str) -> Cluster:
    _nothing_behind(RAIL_ONLY, rest)
    return _switched(cluster, RAIL_ONLY)


def _direct(family: str) -> Callable[[Cluster, str], Cluster]:
    """Servers that are hosts of a network in which hosts have several ports: all NICs of a server spread over them."""

    def make(cluster: Cluster, rest: str) -> Cluster:
        servers = cluster.equal
        text = f"{family}:{rest}" if rest else family
        found = builder(text, hosts=servers.count if has_open_size(text) else None)
        if found.hosts != servers.count:
            raise ClusterError(
                f"it has {found.hosts} hosts for {servers.count} servers: write {family} without numbers, which is "
                "sized by the servers"
            )
        ports = _ports(found)
        if servers.nics % ports:
            fitting = [name for name in _that_fit(servers.count, servers.nics) if name != text]
            raise ClusterError(
                f"{found.expression} needs {ports} ports of every server, over which {servers.nics} NICs do not divide "
                f"evenly: use {' or '.join((*fitting, 'leaf-spine'))}"
            )
        together = servers.nics * servers.nic_bandwidth / ports
        server = replace(servers, nics=1, nic_bandwidth=together)
        return replace(cluster, servers=(server,), network=found.expression, rails=False)

    return make


def _ports(found: Builder) -> int:
    """Links of a host, of the host that has most."""
    made = found.build()
    return int(np.bincount(made.link_src, minlength=made.nodes)[: made.hosts].max())


def _that_fit(servers: int, nics: int) -> list[str]:
    """Networks of this kind over whose ports the NICs spread evenly."""
    members = ((name, FAMILIES[name].sized(servers)) for name in _DIRECT)
    return [name for name, member in members if member is not None and nics % _ports(member) == 0]


def _wire(cluster: Cluster, rest: str) -> Cluster:
    """Ports to be wired: as many as NICs and as fast, or as written behind the colon."""
    servers = cluster.equal
    match = _WIRE.fullmatch(rest.strip()) if rest else None
    if rest and match is None:
        raise ClusterError(f"{rest!r} cannot be read as ports: write wire:8x400Gbps, wire:8 or wire")
    degree = servers.nics if match is None else int(match[1])
    speed = servers.nic_bandwidth if match is None or match[2] is None else units.bandwidth(match[2])
    said = cluster.network if isinstance(cluster.network, Ports) else Ports(degree)
    server = replace(servers, nics=degree, nic_bandwidth=speed)
    return replace(cluster, servers=(server,), network=replace(said, degree=degree), rails=False)


def _nothing_behind(name: str, rest: str) -> None:
    if rest:
        raise ClusterError(f"nothing follows the colon: write {name}")


_DIRECT = ("torus", "mesh", "ring", "hypercube", "bcube", "random-regular", "circulant")
"""Families whose hosts have several ports."""
_EQUAL = "equal servers whose NICs divide evenly over the ports"


def _family(name: str) -> NetworkChoice:
    found = FAMILIES[name]
    numbers = f"{name}[:{found.usage}]"
    if name in _DIRECT:
        about = f"{found.about}; servers are the hosts, with all their NICs"
        return NetworkChoice(name, _direct(name), about, where=_EQUAL, usage=numbers)
    return NetworkChoice(name, _tree(name), found.about, usage=numbers)


NETWORKS: Choices[NetworkChoice] = Choices(
    "network",
    (
        NetworkChoice(OWN, _own, "the network that the cluster has"),
        NetworkChoice("leaf-spine", _tree("leaf-spine"), "servers fill leafs in order, every leaf connects to every "
                      "spine; 2to1 halves the uplinks", usage="leaf-spine[:2to1]"),
        NetworkChoice("fat-tree", _tree("fat-tree"), "three tiers of equal switches; 2to1 halves everything above "
                      "the first", usage="fat-tree[:2to1]"),
        NetworkChoice(RAILS, _by_rail, "rail-optimised: NIC i of every server on leaf i, leafs connected by spines",
                      usage="rails[:2to1]"),
        NetworkChoice(RAIL_ONLY, _rail_only, "one switch per rail and no spines: traffic between rails goes over "
            "NVLink"),
        NetworkChoice("switch", _tree("switch"), "one ideal switch with a port for every NIC"),
        NetworkChoice("wire", _wire, "server ports connected by patch panels, wired for the model", where="equal "
                      "servers",
                      usage="wire[:8x400Gbps]"),
        *(_family(name) for name in FAMILIES if name not in ("leaf-spine", "fat-tree", "switch", *WHOLE_SERVERS)),
    ),
    error=ClusterError,
)  # fmt: skip
"""All networks. Families of fabrics are included automatically; adding another is a function and a line here."""
