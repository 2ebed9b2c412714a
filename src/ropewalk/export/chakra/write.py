"""A step as a Chakra execution trace: PREFIX.<rank>.et for every rank and PREFIX.json with the communicator groups.

Every operation is a node in the file of each rank that takes part; node numbers are the same in all of them. What the
format cannot say exactly is rounded for other readers and kept exactly in attributes of our own, so that reading a
trace back gives the same step: times are whole microseconds, sizes whole bytes. An operation that stands for several in
a row is one node for other readers. A collective of one rank, which nobody else has to hear of, is a node that computes
for no time. ASTRA-sim does not run `REDUCE` and `BARRIER` and replays `BROADCAST` from its duration, which is 0 here.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ropewalk.documents.numbers import is_count
from ropewalk.errors import InputError
from ropewalk.export.chakra import names
from ropewalk.export.chakra.nodes import nodes_of
from ropewalk.export.chakra.order import numbers
from ropewalk.export.chakra.schema import Node, NodeType, Value, encode_metadata
from ropewalk.export.chakra.together import write_together
from ropewalk.export.chakra.wire import record
from ropewalk.files import is_folder
from ropewalk.task.step import Act, Step


def write_chakra(step: Step, prefix: str | Path) -> list[Path]:
    """Write the trace of a step; all files or none. Returns their paths, ranks in order and the groups last."""
    step.check()
    target = Path(prefix)
    left_over = [path for path in rank_files(target) if path[0] >= step.ranks]
    if left_over:
        raise InputError(
            f"{left_over[0][1]} already exists and would be taken for rank {left_over[0][0]} of this step of "
            f"{step.ranks} ranks: remove it or choose another prefix"
        )
    content = {et_path(target, rank): data for rank, data in enumerate(encode_ranks(step))}
    groups = {str(number): members.tolist() for number, members in enumerate(step.groups, 1)}
    content[group_path(target)] = (json.dumps(groups) + "\n").encode()
    write_together(content)
    return list(content)


def et_path(prefix: Path, rank: int) -> Path:
    return prefix.with_name(f"{prefix.name}.{rank}.et")


def group_path(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}.json")


def rank_files(prefix: Path) -> list[tuple[int, Path]]:
    """The files of a trace that exist: (rank, path), in order of rank."""
    begin, end = f"{prefix.name}.", ".et"
    found = []
    for path in prefix.parent.iterdir() if is_folder(prefix.parent) else ():
        number = path.name[len(begin) : -len(end)]
        if path.name.startswith(begin) and path.name.endswith(end) and is_count(number):
            found.append((int(number), path))
    return sorted(found)


def encode_ranks(step: Step) -> list[bytes]:
    """The file of every rank."""
    cut, number = nodes_of(step), numbers(step)
    about: dict[str, Value] = {
        names.RANKS: step.ranks, names.STREAMS: list(step.streams), names.FLOPS: float(step.flops),
        **{f"{names.PHASE}{name}": float(value) for name, value in step.phases.items()},
    }  # fmt: skip
    files: list[list[bytes]] = [[record(encode_metadata(about))] for _ in range(step.ranks)]
    shared = _SharedParts(step, number)
    dep_number = number[cut.dep]
    dep_start, ranks, operations = cut.dep_start.tolist(), cut.rank.tolist(), cut.operation
    for at in np.argsort(number[operations], kind="stable").tolist():
        operation, rank = int(operations[at]), ranks[at]
        node = shared.node(operation, rank)
        node.data_deps = sorted(set(dep_number[dep_start[at] : dep_start[at + 1]].tolist()))
        if node.type == NodeType.COMM_RECV and node.data_deps:
            node.attributes[names.RENDEZVOUS] = True
        files[rank].append(record(node.encoded()))
    return [b"".join(parts) for parts in files]


class _SharedParts:
    """What the nodes of an operation have in common, and what tells a sender from a receiver."""

    def __init__(self, step: Step, number: NDArray[np.int64]) -> None:
        self.step, self.number = step, number
        everyone = np.arange(step.ranks)
        self.is_everyone = [np.array_equal(members, everyone) for members in step.groups]
        self.tag = self._tags()

    def _tags(self) -> dict[int, int]:
        """Sends between the same two ranks are told apart by counting them."""
        sends = np.flatnonzero(self.step.act == Act.SEND)
        count: defaultdict[tuple[int, int], int] = defaultdict(int)
        tags = {}
        for send in sends[np.argsort(self.number[sends])].tolist():
            pair = int(self.step.rank[send]), int(self.step.peer[send])
            tags[send] = count[pair]
            count[pair] += 1
        return tags

    def node(self, operation: int, rank: int) -> Node:
        step = self.step
        act, amount = Act(int(step.act[operation])), float(step.amount[operation])
        node = Node(int(self.number[operation]), step.name_of(operation), attributes={"is_cpu_op": False})
        if act is Act.COMPUTE:
            node.type = NodeType.COMP
            node.duration_micros = round(amount * 1e6)
            if node.duration_micros / 1e6 != amount:
                node.attributes[names.SECONDS] = amount
        elif act is Act.SEND:
            sender, receiver = int(step.rank[operation]), int(step.peer[operation])
            node.type = NodeType.COMM_SEND if rank == sender else NodeType.COMM_RECV
            self._size(node, amount, 1)
            node.attributes |= {"comm_src": sender, "comm_dst": receiver, "comm_tag": self.tag[operation]}
        else:
            self._collective(node, act, operation, amount)
        node.attributes[names.OPERATION] = operation
        for name, value, usual in (
            (names.STREAM, int(step.stream[operation]), 0 if act is Act.COMPUTE else 1),
            (names.PRIORITY, int(step.priority[operation]), 0),
            (names.REPEATS, int(step.repeats[operation]), 1),
        ):
            if value != usual:
                node.attributes[name] = value
        return node

    def _collective(self, node: Node, act: Act, operation: int, amount: float) -> None:
        group = int(self.step.group[operation])
        members = len(self.step.groups[group])
        node.type = NodeType.COMM_COLL if members > 1 else NodeType.COMP
        node.attributes["comm_type"] = int(names.COLLECTIVES[act])
        self._size(node, amount, names.size_factor(act, members))
        if not self.is_everyone[group]:
            node.attributes["pg_name"] = str(group + 1)

    def _size(self, node: Node, amount: float, factor: int) -> None:
        whole = max(round(amount / factor), int(amount > 0))
        node.attributes["comm_size"] = whole
        if whole * factor != amount:
            node.attributes[names.BYTES] = amount
