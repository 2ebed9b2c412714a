"""NCCL's algorithms as transfers: what each pair of ranks exchanges for a byte of the collective.

Rings, trees and exchanges are programs that prove themselves. Where the switches of NVLink add up and copy (NVLS) there
is no program of sends: every GPU sends its whole buffer up and receives the whole result, and of the part that it
looks after it receives the sum and sends it back. A transfer to the next GPU of the server takes the same two links.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.act import Act
from ropewalk.collectives.double_tree import double_tree_all_reduce
from ropewalk.collectives.group import Group
from ropewalk.collectives.nccl import Algorithm, ChosenRun, Library, Protocol, bus_factor, runs_of
from ropewalk.collectives.nccl.embedded import Cycles
from ropewalk.collectives.over_servers import Servers
from ropewalk.collectives.program import Program
from ropewalk.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from ropewalk.collectives.server_trees import server_trees
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.task.template import Template, at_once, fluid
from ropewalk.task.transport import Transport


@lru_cache(maxsize=256)
def template_of(act: Act, what: ChosenRun, servers: Servers, library: Library, cycles: Cycles = ()) -> Template:
    """What NCCL chose, as transfers with its latency and its ceiling; `cycles` are rings along links of a server.

    >>> from ropewalk.collectives.nccl import Protocol, library_for
    >>> from ropewalk.hardware import read_cluster
    >>> ring = ChosenRun(Algorithm.RING, Protocol.LL, 1.0)
    >>> made = template_of(Act.ALL_REDUCE, ring, (8,), library_for(read_cluster("dgx-h100:1")))
    >>> round(float(made.start_up.max()) * 1e6, 1)  # microseconds: a launch and fourteen hops
    15.0
    """
    run = library.run(act, servers, what)
    poured = nccl_template(act, run.algorithm, servers, wires_of(library, run.algorithm), cycles)
    wire, sends = poured.wire / run.share, poured.src >= 0
    # At its ceiling every transfer takes as long as the whole collective.
    cap = np.full(len(wire), np.inf)
    cap[sends] = wire[sends] * run.ceiling / bus_factor(act, sum(servers))
    start_up = np.where(sends, run.latency_s, 0.0)
    return replace(poured, wire=wire / what.part, start_up=start_up, cap=cap, launch_s=run.launch_s)


def least_template_of(act: Act, algorithm: Algorithm, servers: Servers, library: Library) -> Template:
    """No less than this does any size take that the algorithm runs; what is not there for an act runs as it can."""
    runs = runs_of(act, library.communicator(servers))
    names = [run.algorithm for run in runs]
    named = next((one for one in names if one.startswith(algorithm)), names[0])  # between servers NVLS is a tree
    whole = template_of(act, ChosenRun(named, Protocol.SIMPLE, 1.0), servers, library)
    latency = min(library.run(act, servers, ChosenRun(one.algorithm, one.protocol, 1.0)).latency_s for one in runs)
    return replace(whole, start_up=np.where(whole.src >= 0, latency, 0.0))


def wires_of(library: Library, algorithm: Algorithm) -> Transport:
    """Payload of the wires with the protocol Simple; latencies come from the run."""
    return Transport(efficiency_inside=library.share_inside(algorithm), efficiency_across=library.rates.nic)


def sends_of(library: Library) -> Transport:
    """What sends from one rank to another cost, by the protocol Simple."""
    alone = Algorithm.POINT_TO_POINT
    inside, across = (
        library.run(Act.SEND, servers, ChosenRun(alone, Protocol.SIMPLE, 1.0)) for servers in ((2,), (1, 1))
    )
    return replace(
        wires_of(library, alone), start_up_s=inside.launch_s, round_inside_s=inside.latency_s - inside.launch_s,
        round_across_s=across.latency_s - across.launch_s,
    )  # fmt: skip


def nccl_template(act: Act, algorithm: Algorithm, servers: Servers, wires: Transport, cycles: Cycles = ()) -> Template:
    """A collective of ranks that sit so in servers; latencies of hops are left to who knows the protocol.

    Inside a server whose GPUs are joined directly, rings and chains follow `cycles` along its links.

    >>> ring = nccl_template(Act.ALL_REDUCE, Algorithm.RING, (8,), Transport())
    >>> nvls = nccl_template(Act.ALL_REDUCE, Algorithm.NVLS, (8,), Transport())
    >>> ring.wire.max().item(), nvls.wire.max().item()
    (1.75, 1.125)
    """
    if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        return _nvls(servers, wires)
    if cycles and algorithm is Algorithm.TREE:
        return _chains(cycles, servers, wires)
    if cycles and algorithm is Algorithm.RING and act in _HALVES:
        return _poured(_HALVES[act](cycles, both_ways=True), servers, wires)
    if algorithm is Algorithm.TREE:
        return _poured(server_trees(servers), servers, wires)
    if act is Act.SEND:
        return _around(servers, wires)
    name = "direct" if act is Act.ALL_TO_ALL else str(algorithm)
    return _poured(COLLECTIVES[name].program(act, Group(servers)), servers, wires)


_HALVES = {
    Act.ALL_REDUCE: ring_all_reduce, Act.ALL_GATHER: ring_all_gather, Act.REDUCE_SCATTER: ring_reduce_scatter,
}  # fmt: skip


def _chains(cycles: Cycles, servers: Servers, wires: Transport) -> Template:
    """Sums go up a chain along every ring and the result comes down, each with an equal part of the buffer."""
    up = np.concatenate([np.column_stack([order[:-1], order[1:]]) for order in map(np.array, cycles)])
    src, dst = np.concatenate([up, up[:, ::-1]]).T
    pair, number = np.unique(src * sum(servers) + dst, return_inverse=True)
    carried = np.bincount(number) / len(cycles)
    return at_once(*np.divmod(pair, sum(servers)), carried, servers, wires)


def _poured(program: Program, servers: Servers, wires: Transport) -> Template:
    return replace(fluid(program, servers, wires), rounds_inside=0, rounds_across=0)


def _around(servers: Servers, wires: Transport) -> Template:
    """Every rank sends to the next one, as in sendrecv_perf."""
    ranks = sum(servers)
    src = np.arange(ranks)
    return at_once(src, (src + 1) % ranks, np.ones(ranks), servers, wires)


def _nvls(servers: Servers, wires: Transport) -> Template:
    first = np.cumsum(servers, dtype=np.int64) - np.array(servers, np.int64)
    rings = [(first[server] + np.arange(size), size) for server, size in enumerate(servers)]
    src = np.concatenate([ring for ring, _ in rings])
    dst = np.concatenate([np.roll(ring, -1) for ring, _ in rings])
    carried = np.concatenate([np.full(size, 1 + 1 / size) for _, size in rings])
    if len(servers) > 1:
        up = _between_heads(servers, first)
        src, dst, carried = (np.concatenate(both) for both in zip((src, dst, carried), up, strict=True))
    return at_once(src, dst, carried, servers, wires)


def _between_heads(
    servers: Servers, first: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """GPUs of the same number all-reduce their part of the buffer in double binary trees over the servers."""
    trees = fluid(double_tree_all_reduce(len(servers), segments=1), (1,) * len(servers), Transport())
    sends = np.flatnonzero(trees.src >= 0)
    heads = np.arange(min(servers))
    src, dst = ((first[ends[sends]][:, None] + heads).ravel() for ends in (trees.src, trees.dst))
    return src, dst, np.repeat(trees.wire[sends] / len(heads), len(heads))
