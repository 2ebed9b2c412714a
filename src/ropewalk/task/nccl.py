"""NCCL's algorithms as transfers: what each pair of ranks exchanges for a byte of the collective.

Rings, trees and exchanges are programs that prove themselves. Where the switches of NVLink add up and copy (NVLS) there
is no program of sends: every GPU sends its whole buffer up and receives the whole result, and of the part that it
looks after it receives the sum and sends it back. A transfer to the next GPU of the server takes the same two links.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.act import Act
from ropewalk.collectives.double_tree import double_tree_all_reduce
from ropewalk.collectives.group import Group
from ropewalk.collectives.nccl import Algorithm
from ropewalk.collectives.over_servers import Servers
from ropewalk.collectives.program import Program
from ropewalk.collectives.server_trees import server_trees
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.task.template import Template, at_once, fluid
from ropewalk.task.transport import Transport


def nccl_template(act: Act, algorithm: Algorithm, servers: Servers, wires: Transport) -> Template:
    """A collective of ranks that sit so in servers; latencies of hops are left to who knows the protocol.

    >>> ring = nccl_template(Act.ALL_REDUCE, Algorithm.RING, (8,), Transport())
    >>> nvls = nccl_template(Act.ALL_REDUCE, Algorithm.NVLS, (8,), Transport())
    >>> ring.wire.max().item(), nvls.wire.max().item()
    (1.75, 1.125)
    """
    if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        return _nvls(servers, wires)
    if algorithm is Algorithm.TREE:
        return _poured(server_trees(servers), servers, wires)
    if act is Act.SEND:
        return _around(servers, wires)
    name = "direct" if act is Act.ALL_TO_ALL else str(algorithm)
    return _poured(COLLECTIVES[name].program(act, Group(servers)), servers, wires)


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
