"""Nodes of different ranks that are one operation: members of a collective, a send and its receive.

Collectives of a group are matched in the order of their numbers on every rank, as communicators match them; sends
between two ranks by their tag, and in order where several have the same. A receive is no operation of its own: who
waits for it waits for the send and for whatever the receive waits for.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.export.chakra import names
from ropewalk.export.chakra.load import Loaded, TraceFindings
from ropewalk.export.chakra.price import NodeSpeeds
from ropewalk.export.chakra.schema import CollectiveType, Node, NodeType
from ropewalk.export.chakra.wire import WireError
from ropewalk.task.step import Act

COMPUTES = (NodeType.COMP, NodeType.MEM_LOAD, NodeType.MEM_STORE)
Place = tuple[int, int]
"""(rank, number of the node)."""


@dataclass
class MatchedOperation:
    act: Act
    amount: float
    first: Node
    rank: int = -1
    peer: int = -1
    group: int = -1
    places: list[Place] = field(default_factory=list)
    """Its nodes whose waits are its own."""


@dataclass
class Matched:
    operations: list[MatchedOperation]
    groups: list[NDArray[np.int32]]
    of_node: dict[Place, int]
    """The operation that a node is, or that a receive receives."""


class Matcher:
    """Goes through all nodes once and collects what belongs together."""

    def __init__(self, loaded: Loaded, price: NodeSpeeds, findings: TraceFindings) -> None:
        self.loaded, self.price, self.findings = loaded, price, findings
        self.groups = list(loaded.groups.values())
        self.members = [set(members.tolist()) for members in self.groups]
        self.number_of_group = {name: number for number, name in enumerate(loaded.groups)}
        self.operations: list[MatchedOperation] = []
        self.of_node: dict[Place, int] = {}
        self.meetings: dict[tuple[int, int], int] = {}
        self.met: defaultdict[Place, int] = defaultdict(int)
        self.sends: defaultdict[tuple[int, int, int], list[Place]] = defaultdict(list)
        self.receives: defaultdict[tuple[int, int, int], list[Place]] = defaultdict(list)

    def match(self) -> Matched:
        for rank, nodes in enumerate(self.loaded.nodes):
            for number in sorted(nodes):
                try:
                    self._take(rank, nodes[number])
                except WireError as problem:
                    self.findings.add(f"rank {rank}: {problem}")
        self._check_meetings()
        self._join_sends()
        return Matched(self.operations, self.groups, self.of_node)

    def _take(self, rank: int, node: Node) -> None:
        if node.type in COMPUTES and "comm_type" not in node.attributes:
            seconds = self.price.seconds(rank, node, self.findings)
            self._add(MatchedOperation(Act.COMPUTE, seconds, node, rank=rank), rank, node)
        elif node.type == NodeType.COMM_COLL or node.type in COMPUTES:
            self._collective(rank, node)
        elif node.type == NodeType.COMM_SEND:
            self.sends[rank, node.whole("comm_dst", -1), node.whole("comm_tag")].append((rank, node.id))
        elif node.type == NodeType.COMM_RECV:
            self.receives[node.whole("comm_src", -1), rank, node.whole("comm_tag")].append((rank, node.id))
        elif node.type != NodeType.METADATA:
            self.findings.add(f"rank {rank}: node {node.id} ({node.name}) has type {node.type}, which is not a task")

    def _add(self, operation: MatchedOperation, rank: int, node: Node) -> int:
        self.operations.append(operation)
        self._belongs(len(self.operations) - 1, rank, node)
        return len(self.operations) - 1

    def _belongs(self, operation: int, rank: int, node: Node) -> None:
        self.operations[operation].places.append((rank, node.id))
        self.of_node[rank, node.id] = operation

    def _collective(self, rank: int, node: Node) -> None:
        kind = node.whole("comm_type", -1)
        act, group = names.ACTS.get(kind), self._group(rank, node)
        if act is None:
            name = CollectiveType(kind).name if kind in list(CollectiveType) else f"of type {kind}"
            known = ", ".join(CollectiveType(known).name for known in names.ACTS)
            self.findings.add(f"rank {rank}: node {node.id} ({node.name}) is a collective {name}: known are {known}")
        if act is None or group is None:
            return
        members = self.groups[group]
        if rank not in self.members[group]:
            self.findings.add(f"rank {rank}: node {node.id} ({node.name}) is a collective of a group without this rank")
            return
        amount = _bytes_of(node, names.size_factor(act, len(members)))
        key = group, self.met[group, rank]
        self.met[group, rank] += 1
        if key not in self.meetings:
            self.meetings[key] = self._add(MatchedOperation(act, amount, node, group=group), rank, node)
            return
        operation = self.operations[self.meetings[key]]
        if (operation.act, operation.amount) != (act, amount):
            first = operation.places[0][0]
            self.findings.add(
                f"collective {key[1] + 1} of group {members.tolist()[:8]} is {act.name} of {amount:g} bytes on rank "
                f"{rank} and {operation.act.name} of {operation.amount:g} on rank {first}: ranks must agree"
            )
        self._belongs(self.meetings[key], rank, node)

    def _group(self, rank: int, node: Node) -> int | None:
        name = str(node.attributes.get("pg_name", "") or "")
        if name in self.number_of_group:
            return self.number_of_group[name]
        if name not in ("", "0"):
            self.findings.add(f"rank {rank}: node {node.id} ({node.name}) names group {name!r}, which is not listed")
            return None
        dims = node.attributes.get("involved_dim")
        if isinstance(dims, list) and not all(dims):
            self.findings.add(
                f"rank {rank}: node {node.id} ({node.name}) is a collective along dimensions {dims} of a network: "
                "name its group (pg_name) instead"
            )
            return None
        everyone = np.arange(self.loaded.ranks, dtype=np.int32)
        number = next((n for n, members in enumerate(self.groups) if np.array_equal(members, everyone)), None)
        if number is None:
            number = len(self.groups)
            self.groups.append(everyone)
            self.members.append(set(everyone.tolist()))
        self.number_of_group[name] = number
        return number

    def _check_meetings(self) -> None:
        for (group, turn), operation in self.meetings.items():
            present = {rank for rank, _ in self.operations[operation].places}
            absent = sorted(self.members[group] - present)
            if absent:
                name = self.operations[operation].first.name
                self.findings.add(
                    f"collective {turn + 1} ({name}) of group {self.groups[group].tolist()[:8]}: "
                    f"rank {absent[0]} never takes part"
                )

    def _join_sends(self) -> None:
        for key in sorted({*self.sends, *self.receives}):
            sends, receives = self.sends[key], self.receives[key]
            src, dst, tag = key
            for rank, number in [*sends[len(receives) :], *receives[len(sends) :]]:
                what, other = ("send", "receive") if rank == src else ("receive", "send")
                self.findings.add(
                    f"rank {rank}: node {number} is a {what} ({src} to {dst}, tag {tag}) without a {other}"
                )
            for sent, received in zip(sends, receives, strict=False):
                self._join(sent, received, src, dst)

    def _join(self, sent: Place, received: Place, src: int, dst: int) -> None:
        sender, receiver = (self.loaded.nodes[rank][number] for rank, number in (sent, received))
        amount = _bytes_of(sender, 1)
        if amount != _bytes_of(receiver, 1):
            self.findings.add(
                f"rank {src}: node {sender.id} sends {amount:g} bytes, but rank {dst} expects "
                f"{_bytes_of(receiver, 1):g} in node {receiver.id}"
            )
        if src == dst:
            self.findings.add(f"rank {src}: node {sender.id} sends to its own rank: leave such sends out")
        operation = self._add(MatchedOperation(Act.SEND, amount, sender, rank=src, peer=dst), src, sender)
        self.of_node[received] = operation
        if receiver.attributes.get(names.RENDEZVOUS):
            self.operations[operation].places.append(received)


def _bytes_of(node: Node, factor: int) -> float:
    exact = node.attributes.get(names.BYTES)
    return float(exact) if isinstance(exact, float) else node.number("comm_size") * factor
