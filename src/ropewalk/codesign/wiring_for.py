"""A wiring for any step: from a cluster with ports to be wired to the network that its step runs on.

`ropewalk plan` looks for seats of layers and cables in turns. Whoever has a strategy already, uniform degrees for one,
lowers its step and asks for the cables here. What comes back is a `Designed`, on which `training` runs the step:
`NetworkUse(designed=wiring_for(step, cluster))`; `wired` does both for a question about training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ropewalk.codesign.cable_draft import CableDraft
from ropewalk.codesign.demands import Demands
from ropewalk.codesign.finder import find_circulants, find_topologies
from ropewalk.codesign.in_proportion import lay_in_proportion
from ropewalk.codesign.link_loads import LinkLoads, all_pairs
from ropewalk.codesign.network import StepNetwork, wired_network
from ropewalk.codesign.numbering import on_cosets
from ropewalk.codesign.planes import fitted, least_planes, one_panel, patch_list
from ropewalk.codesign.question import LINK_LATENCY_S
from ropewalk.codesign.routes import router_of
from ropewalk.codesign.step_demands import demands_of_step
from ropewalk.codesign.traffic import traffic_of
from ropewalk.errors import FabricError, StrategyError
from ropewalk.fabric.wiring import Wiring
from ropewalk.hardware import Cluster
from ropewalk.plans import Designed
from ropewalk.routing.listed import listed
from ropewalk.task.step import Step
from ropewalk.training import TrainingQuestion, answer
from ropewalk.training.prepared import prepared

FINALISTS = 3
"""Wirings that are handed to `cost`, those whose busiest cable has the least to do."""

Cost = Callable[[Designed], float]
"""Seconds of whatever the wiring is for."""


def wiring_for(asked: Step | Demands, cluster: Cluster, cost: Cost | None = None) -> Designed:
    """Cables and routes for what a step sends; rank r of a step is GPU r of the cluster, or server r if it has so many.

    Of the wirings that can be patched, the one whose busiest cable has the least to do; with `cost`, the fastest of
    the first few by it. All pairs of servers are routed, with shares for what the step sends. The same step and
    cluster give the same wiring.

    >>> from ropewalk.hardware import Ports, Servers
    >>> from ropewalk.task.step import Act, StepSketch
    >>> cluster = Cluster((Servers(4, 2, "h100", 450e9, 2, 25e9),), Ports(2))
    >>> sketch = StepSketch(8)
    >>> _ = sketch.collective(Act.ALL_REDUCE, range(8), 1e9)
    >>> wiring_for(sketch.step(), cluster).wiring.cables
    ((0, 1, 1), (0, 3, 1), (1, 2, 1), (2, 3, 1))
    """
    demands = asked if isinstance(asked, Demands) else demands_of_step(asked, _server_of_rank(asked, cluster))
    _check(demands, cluster)
    best = sorted(_drafts(demands, cluster), key=lambda one: one.busiest)
    found = [one.designed() for one in best[: 1 if cost is None else FINALISTS]]
    return min(found, key=cost) if cost is not None else found[0]


@dataclass(frozen=True, eq=False)
class _Draft:
    """A wiring whose servers stand in their places, with routes for what they send."""

    network: StepNetwork
    wiring: Wiring
    places: tuple[int, ...]
    busiest: float
    """Seconds that the busiest cable needs for all that it carries in a step."""

    def designed(self) -> Designed:
        routes = self.network.router(self.network.fabric, *all_pairs(self.wiring.servers))
        server = np.array(self.wiring.renumbered(self.places).by_place)
        paths = [(share, tuple(server[list(nodes)].tolist())) for share, nodes in listed(routes)]
        ends = sorted(range(len(paths)), key=lambda at: (paths[at][1][0], paths[at][1][-1], at))
        return Designed(self.wiring.renumbered(self.places), tuple(paths[at] for at in ends))


def _drafts(demands: Demands, cluster: Cluster) -> list[_Draft]:
    """Every wiring that can be patched; where none can, the reason why the first cannot."""
    ports = cluster.ports
    placed, places = on_cosets(demands, duplex=ports.duplex)
    drafts, refused = [], None
    for wiring in _wirings(placed, cluster):
        try:
            (one_panel if ports.single_panel else patch_list)(wiring)
        except FabricError as reason:
            refused = refused or reason
            continue
        network = wired_network(wiring, router_of(wiring, placed))
        traffic = traffic_of(wiring, placed)
        loads = LinkLoads(network, demands.servers, placed)
        busiest = loads.pairs_seconds(traffic.source, traffic.destination, traffic.size_bytes)
        drafts.append(_Draft(network, wiring, places, busiest))
    if refused is not None and not drafts:
        raise refused
    return drafts


def _wirings(placed: Demands, cluster: Cluster) -> Iterator[Wiring]:
    """Rings and matchings for the demands, rings alone, then cables in proportion to the bytes between servers."""
    ports, servers = cluster.ports, cluster.equal
    latency = LINK_LATENCY_S if cluster.latency_s is None else cluster.latency_s
    for find in (find_topologies, find_circulants) if placed.pair_bytes else (find_topologies,):
        yield from find(
            placed,
            degree=ports.degree,
            bandwidth=servers.nic_bandwidth,
            duplex=ports.duplex,
            latency=latency,
            planes=not ports.single_panel,
        )
    bare = Wiring(
        servers.count, ports.degree, ports.duplex, servers.nic_bandwidth, latency, (), (), 0, ports.degree
    )  # fmt: skip
    traffic, sent = traffic_of(bare, placed), np.zeros((servers.count, servers.count))
    np.add.at(sent, (traffic.source, traffic.destination), traffic.size_bytes)
    draft = CableDraft(servers.count, ports.degree, duplex=ports.duplex)
    if lay_in_proportion(draft, sent):
        laid = replace(bare, cables=draft.cables())
        fits = fitted(laid) if not ports.single_panel and least_planes(laid) <= ports.degree else laid
        if fits == laid or _is_whole(fits):
            yield fits


def _is_whole(wiring: Wiring) -> bool:
    """Does a path lead from every server to every other?"""
    fabric = wiring.fabric()
    graph = csr_array((np.ones(fabric.links), (fabric.link_src, fabric.link_dst)), (fabric.nodes, fabric.nodes))
    return int(connected_components(graph, connection="strong")[0]) == 1


def _server_of_rank(step: Step, cluster: Cluster) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    servers = cluster.equal
    if step.ranks not in (servers.count, servers.count * servers.gpus):
        raise StrategyError(
            f"a step of {step.ranks} ranks does not fill {servers.count} servers of {servers.gpus} GPUs: "
            f"give every GPU a rank, {servers.count * servers.gpus} in all"
        )
    return np.arange(step.ranks) // (step.ranks // servers.count)


def _check(demands: Demands, cluster: Cluster) -> None:
    if demands.servers != cluster.equal.count:
        raise StrategyError(
            f"demands of {demands.servers} servers do not fit a cluster of {cluster.equal.count}: "
            "derive both from the same servers"
        )


def wired(question: TrainingQuestion, *, by_simulation: bool = False) -> TrainingQuestion:
    """The same question on a network that is wired for its step; with `by_simulation`, for its simulated time.

    >>> from ropewalk.hardware import Ports, Servers
    >>> cluster = Cluster((Servers(4, 2, "h100", 450e9, 4, 25e9),), Ports(4))
    >>> wired(TrainingQuestion("gpt2", cluster, tensor=2, sequence=64)).network.designed.wiring.rings
    (GroupRings(size=4, jumps=(1, 1), wired=True),)
    """
    cluster = question.place

    def on(designed: Designed) -> TrainingQuestion:
        return replace(question, network=replace(question.network, designed=designed))

    def seconds(designed: Designed) -> float:
        return answer(on(designed)).statistics.step_time_s

    return on(wiring_for(step_of(question), cluster, seconds if by_simulation else None))


def step_of(question: TrainingQuestion) -> Step:
    """The step that ports are to be wired for; what ranks send does not depend on the network."""
    cluster = question.place
    groups = tuple(replace(group, nics=1) for group in cluster.servers)
    return prepared(replace(question, cluster=replace(cluster, servers=groups, network="switch"))).write()
