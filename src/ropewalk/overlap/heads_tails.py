"""Heads and tails: how soon each gradient can be sent, and how much computing waits behind it, on the real graph.

A step is a graph of computing and of sums over the network, from the start of one backward pass to the end of the next
forward pass. If computing never had to queue, the *head* of a sum is the longest path from the start to it, its *tail*
the longest path behind it, and all that is left to decide is when the one network works on which sum: the relaxation
behind PACE (Bao, Peng, Chen, Wu: Preemptive all-reduce scheduling for expediting distributed DNN training, INFOCOM
2020). Its optimum is a lower bound. `on_one_stream` adds the order in which a GPU with one stream computes; then heads
and tails are exact, and so is what follows from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ropewalk.arrays import Floats, Ints
from ropewalk.errors import Findings, GraphError
from ropewalk.overlap._paths import a_cycle, longest_from, longest_to, topological_order
from ropewalk.overlap.link import Link
from ropewalk.overlap.tensors import Tensors

MOST_NAMED = 6
"""Nodes of a cycle that a message lists."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Gradients as the network sees them: when each may begin, how large it is, how much computing waits for it.

    A step takes `computing_s`, or as long as the slowest sum with all that waits for it.
    """

    names: tuple[str, ...]
    head_s: Floats
    size_bytes: Floats
    tail_s: Floats
    computing_s: float
    """The longest path if sums took no time."""

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def in_ready_order(self) -> Ints:
        """By head; of equal heads the smaller tail first, as the backward pass of a chain has it."""
        return np.lexsort((-np.arange(len(self)), self.tail_s, self.head_s)).astype(np.int64)

    def step_s(self, arrival_s: ArrayLike) -> float:
        """Seconds of a step in which the sums are there at these times."""
        return max(self.computing_s, float((np.asarray(arrival_s, np.float64) + self.tail_s).max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class StepGraph:
    """One step as a graph: nodes are pieces of computing or sums; edges say what waits for what.

    >>> graph = StepGraph.of(("b", "f"), [2, 3], [("b", "s"), ("s", "f")], sums={"s": 4e6})
    >>> graph.sums(Link(bandwidth=1e6)).head_s.tolist(), graph.sums(Link(bandwidth=1e6)).tail_s.tolist()
    ([2.0], [3.0])
    """

    names: tuple[str, ...]
    seconds: Floats
    """Of computing; 0 for sums."""
    sum_nodes: Ints
    """The nodes that are sums."""
    size_bytes: Floats
    """By sum."""
    src: Ints
    dst: Ints
    stream: Ints
    """The nodes that compute, in the order in which the framework launches them."""

    def __post_init__(self) -> None:
        if len(self.order) < len(self.names):
            cycle = a_cycle(self._out_start, self._out_node, self._waits, self.order)
            named = [self.names[node] for node in cycle[:MOST_NAMED]] + ["…"] * (len(cycle) > MOST_NAMED)
            closed = " → ".join([*named, self.names[cycle[0]]])
            raise GraphError(f"step graph: {closed} depend on each other in a cycle: remove one of these dependencies")

    @classmethod
    def of(
        cls, names: Sequence[str], seconds: ArrayLike, edges: Sequence[tuple[str, str]], sums: dict[str, float]
    ) -> StepGraph:
        """A graph by names: computing in launch order with seconds, sums with bytes, edges (before, behind)."""
        every = (*names, *sums)
        time = np.asarray(seconds, np.float64)
        findings = Findings(GraphError, "step graph")
        if time.shape != (len(names),):
            findings.add(f"{len(names)} nodes have {time.size} times: give one for each")
        elif not (np.isfinite(time).all() and (time >= 0).all()):
            findings.add("a node computes for a time that is negative or not finite: give 0 or more seconds")
        for name, size in sums.items():
            if not 0 <= size < np.inf:
                findings.add(f"sum {name!r} has {size:g} bytes: give 0 or more")
        for name in sorted({name for name in every if every.count(name) > 1}):
            findings.add(f"{name!r} is listed twice: give every node its own name")
        number = {name: at for at, name in enumerate(every)}
        for name in sorted({name for edge in edges for name in edge if name not in number}):
            findings.add(f"an edge names {name!r}, which is no node: list it with its seconds, or among the sums")
        findings.raise_if_any()
        return cls(
            every,
            np.concatenate([time, np.zeros(len(sums))]),
            np.arange(len(names), len(every)),
            np.array(list(sums.values()), np.float64),
            np.array([number[before] for before, _ in edges], np.int64),
            np.array([number[behind] for _, behind in edges], np.int64),
            np.arange(len(names)),
        )

    @cached_property
    def _out_start(self) -> Ints:
        return np.concatenate([[0], np.cumsum(np.bincount(self.src, minlength=len(self.names)))])

    @cached_property
    def _out_node(self) -> Ints:
        return self.dst[np.argsort(self.src, kind="stable")]

    @cached_property
    def _waits(self) -> Ints:
        return np.bincount(self.dst, minlength=len(self.names))

    @cached_property
    def order(self) -> Ints:
        """Nodes in an order in which nothing comes before what it waits for."""
        return np.asarray(topological_order(self._out_start, self._out_node, self._waits))

    def on_one_stream(self) -> StepGraph:
        """The same step on a GPU that computes one node at a time, in the order of `stream`."""
        return StepGraph(
            self.names,
            self.seconds,
            self.sum_nodes,
            self.size_bytes,
            np.concatenate([self.src, self.stream[:-1]]),
            np.concatenate([self.dst, self.stream[1:]]),
            self.stream,
        )

    def sums(self, link: Link) -> Sums:
        """Heads and tails of all sums.

        Where a sum waits for another one, its head holds the time of the other and the other's tail holds its own: with
        that, the rule of the largest tail never works on them in the wrong order.
        """
        weight = self.seconds.copy()
        weight[self.sum_nodes] = link.start_up_s + self.size_bytes / link.throughput
        return Sums(
            tuple(self.names[node] for node in self.sum_nodes),
            longest_to(self.order, self._out_start, self._out_node, weight)[self.sum_nodes],
            self.size_bytes,
            longest_from(self.order, self._out_start, self._out_node, weight)[self.sum_nodes],
            self.computing_s,
        )

    @cached_property
    def computing_s(self) -> float:
        """The longest path if sums took no time."""
        before = longest_to(self.order, self._out_start, self._out_node, self.seconds)
        return float((before + self.seconds).max(initial=0.0))

    def step_s(self, arrival_s: ArrayLike) -> float:
        """When everything is computed if the sums are there at these times, whatever they had to wait for."""
        begin = np.zeros(len(self.names))
        held = np.zeros(len(self.names))
        held[self.sum_nodes] = np.asarray(arrival_s, np.float64)
        end = 0.0
        sums = set(self.sum_nodes.tolist())
        for node in self.order.tolist():
            done = held[node] if node in sums else begin[node] + self.seconds[node]
            end = max(end, done)
            behind = self._out_node[self._out_start[node] : self._out_start[node + 1]]
            begin[behind] = np.maximum(begin[behind], done)
        return end


def step_graph(tensors: Tensors) -> StepGraph:
    """The graph of a model: backward pass, sums, next forward pass, with the branches that the model has.

    A layer goes forward again only when its own backward pass is over. Branches may be computed side by side unless
    the graph is put `on_one_stream`.
    """
    layers, count = tensors.layers, len(tensors)
    back, ahead = np.arange(layers), layers + np.arange(layers)
    node = 2 * layers + np.arange(count)
    read = np.array([source for reads in tensors.inputs for source in reads], np.int64)
    reader = np.repeat(np.arange(layers), [len(reads) for reads in tensors.inputs])
    return StepGraph(
        (
            *(f"{name} backward" for name in tensors.layer_names),
            *(f"{name} forward" for name in tensors.layer_names),
            *tensors.names,
        ),
        np.concatenate([tensors.backward_s, tensors.forward_s, np.zeros(count)]),
        node,
        tensors.size_bytes,
        np.concatenate([back[reader], ahead[read], back, back[tensors.layer], node]),
        np.concatenate([back[read], ahead[reader], ahead, node, ahead[tensors.layer]]),
        np.concatenate([back[::-1], ahead]),
    )


def one_stream_sums(tensors: Tensors) -> Sums:
    """Heads and tails where one stream computes all layers in turn: as seen, or as measured, by `tensors`."""
    return Sums(tensors.names, tensors.ready_s, tensors.size_bytes, tensors.tail_s, tensors.compute_s)
