"""What can be said of any fabric: ports, connectivity, distances and bisection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError
from ropewalk.fabric.bisection import bisection
from ropewalk.fabric.distances import host_distances
from ropewalk.fabric.fabric import Fabric


@dataclass(frozen=True)
class FabricFacts:
    """The facts of a fabric that an engineer asks for first."""

    name: str
    hosts: int
    switches: int
    links: int
    """Directed links."""
    cables: int
    """Physical cables: a duplex link is one, a link of two cables is two."""
    host_ports: tuple[int, int]
    """Fewest and most cables at a host."""
    switch_ports: tuple[int, int] | None
    """Fewest and most cables at a switch; None without switches."""
    host_bandwidth: tuple[float, float]
    """Least and most bytes/s that a host can send."""
    connected: bool
    """Every host reaches every other."""
    diameter: int | None
    """Links of the longest shortest path between hosts; None where hosts are cut off or too many to measure."""
    mean_distance: float | None
    """Links of an average shortest path between two different hosts."""
    bisection: float | None
    """Bytes/s, one direction, across the narrowest cut found that halves the hosts; None for one host."""
    bisection_is_bound: bool
    """True where a search found the cut: the narrowest may be narrower still."""

    def as_json(self) -> dict[str, Any]:
        """The facts in plain types; bandwidths say their unit."""
        unit = {name: f"{name}_bytes_per_s" for name in ("host_bandwidth", "bisection")}
        return {unit.get(name, name): value for name, value in asdict(self).items()}


def facts(fabric: Fabric) -> FabricFacts:
    """Count and measure a fabric.

    >>> from ropewalk.fabric import Torus
    >>> facts(Torus((4, 4)).build()).diameter
    4
    """
    ports, cables = _cables(fabric)
    sent = fabric.host_bandwidth()
    connected = not unreachable(fabric)
    diameter, mean = host_distances(fabric) if connected else (None, None)
    cut, is_bound = bisection(fabric)
    return FabricFacts(
        name=fabric.name,
        hosts=fabric.hosts,
        switches=fabric.switches,
        links=fabric.links,
        cables=cables,
        host_ports=(int(ports[: fabric.hosts].min()), int(ports[: fabric.hosts].max())),
        switch_ports=(int(ports[fabric.hosts :].min()), int(ports[fabric.hosts :].max())) if fabric.switches else None,
        host_bandwidth=(float(sent.min()), float(sent.max())),
        connected=connected,
        diameter=diameter,
        mean_distance=mean,
        bisection=cut,
        bisection_is_bound=is_bound,
    )


def require_connected(fabric: Fabric) -> None:
    """Refuse a fabric in which some host cannot reach another, and say which."""
    sentences = unreachable(fabric)
    if sentences:
        raise FabricError(f"{fabric.name}: {'; '.join(sentences)}")


def unreachable(fabric: Fabric) -> list[str]:
    """A sentence for each way in which hosts are cut off from the first one; empty where all reach all."""
    if fabric.hosts < 2:
        return []
    reached = _reached(fabric, fabric.link_src, fabric.link_dst)
    reaching = _reached(fabric, fabric.link_dst, fabric.link_src)
    first = fabric.node_names[0]
    back = "add links in the other direction too"
    sentences = []
    if (apart := ~reached & ~reaching).any():
        near = _names(fabric, reached & reaching)
        sentences.append(
            f"hosts {near} and hosts {_names(fabric, apart)} cannot reach each other: add links between them"
        )
    if (deaf := ~reached & reaching).any():
        sentences.append(f"host {first} cannot reach {_names(fabric, deaf)}, although they reach it: {back}")
    if (mute := reached & ~reaching).any():
        sentences.append(f"{_names(fabric, mute)} cannot reach host {first}, although it reaches them: {back}")
    return sentences


def _reached(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which hosts a walk from host 0 along src -> dst arrives at."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    step = csr_array((np.ones(len(src), np.int8), (src, dst)), shape=(fabric.nodes, fabric.nodes))
    visited = np.zeros(fabric.nodes, bool)
    visited[breadth_first_order(step, 0, return_predecessors=False)] = True
    return visited[: fabric.hosts]


def _names(fabric: Fabric, chosen: NDArray[np.bool_], at_most: int = 5) -> str:
    hosts: Iterable[int] = np.flatnonzero(chosen)[:at_most].tolist()
    listed = ", ".join(fabric.node_names[host] for host in hosts)
    more = int(chosen.sum()) - at_most
    return f"{listed} and {more} more" if more > 0 else listed


def _cables(fabric: Fabric) -> tuple[NDArray[np.int64], int]:
    """Cables at every node and in all, where links of opposite direction share a cable as far as they pair up."""
    low, high = np.minimum(fabric.link_src, fabric.link_dst), np.maximum(fabric.link_src, fabric.link_dst)
    pair, of_link = np.unique(low * np.int64(fabric.nodes) + high, return_inverse=True)
    forward = fabric.link_src < fabric.link_dst
    count = np.maximum(
        np.bincount(of_link, weights=fabric.cables * forward, minlength=len(pair)),
        np.bincount(of_link, weights=fabric.cables * ~forward, minlength=len(pair)),
    )
    ports = np.bincount(pair // fabric.nodes, weights=count, minlength=fabric.nodes)
    ports = ports + np.bincount(pair % fabric.nodes, weights=count, minlength=fabric.nodes)
    return ports.astype(np.int64), int(count.sum())
