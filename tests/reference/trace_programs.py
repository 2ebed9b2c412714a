"""The program that the sends and receives of its Chakra traces are, round by round."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ropewalk.collectives import Condition, Pattern, Program, Round
from ropewalk.errors import GraphError
from ropewalk.export.chakra import names
from ropewalk.export.chakra.program_read import ProgramTrace, chunks_of
from ropewalk.export.chakra.schema import NodeType


def program_of(trace: ProgramTrace) -> Program:
    """The program that the sends and receives of a trace are, round by round; `check` proves it as any other."""
    sends: defaultdict[int, list[tuple[int, int, int, bool, tuple[int, ...]]]] = defaultdict(list)
    adding = {
        (node.whole("comm_src", -1), rank, node.whole("comm_tag")): bool(node.attributes.get(names.ADDS))
        for rank, nodes in enumerate(trace.nodes)
        for node in nodes.values()
        if node.type == NodeType.COMM_RECV
    }
    for rank, nodes in enumerate(trace.nodes):
        for node in nodes.values():
            if node.type != NodeType.COMM_SEND:
                continue
            peer, tag = node.whole("comm_dst", -1), node.whole("comm_tag")
            if (rank, peer, tag) not in adding:
                raise GraphError(f"{trace.name}: rank {rank} sends to {peer} (tag {tag}), which receives nothing")
            row = rank, peer, node.whole(names.LANE), adding[rank, peer, tag], chunks_of(trace, rank, node)
            sends[node.whole(names.ROUND)].append(row)
    rounds = tuple(_round(sends[number]) for number in sorted(sends))
    pre, post = (_members(trace.ranks, trace.chunks, sets) for sets in (trace.holds, trace.wants))
    return Program(trace.name, trace.ranks, trace.chunks, rounds, pre, post, trace.buffer_chunks)


def _round(rows: list[tuple[int, int, int, bool, tuple[int, ...]]]) -> Round:
    src, dst, lane, adds, chunks = zip(*rows, strict=True)
    counts = np.array([len(ids) for ids in chunks], np.int64)
    pattern = Pattern(
        np.array(src, np.int32), np.array(dst, np.int32), counts, np.array(adds, np.bool_), np.array(lane, np.int32)
    )  # fmt: skip
    start = np.concatenate([[0], np.cumsum(counts)])
    ids = np.array([chunk for own in chunks for chunk in own], np.int64)
    return Round(pattern, lambda: (start, ids))


def _members(ranks: int, chunks: int, sets: tuple[tuple[int, ...], ...]) -> Condition:
    mask = np.zeros((ranks, chunks), bool)
    for rank, own in enumerate(sets):
        mask[rank, list(own)] = True
    return lambda chunk: mask[:, chunk]
