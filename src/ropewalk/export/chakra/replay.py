"""Run the traces of a program as ranks would, in any order that their waits allow, and see what everybody ends with.

This knows nothing of rounds and lanes: a node starts when the nodes that it waits for are done, a receive when its
message is there. If a trace is right under every choice of what starts next, its waits are enough.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from ropewalk.errors import ProofError
from ropewalk.export.chakra import names
from ropewalk.export.chakra.program_read import ProgramTrace, chunks_of
from ropewalk.export.chakra.schema import Node, NodeType

Place = tuple[int, int]
"""(rank, number of the node)."""
Choose = Callable[[Sequence[Place]], Place]
"""Which of the nodes that can start now does."""
Content = Counter[int]
"""Whose inputs a copy of a chunk holds, and how often each."""
Message = dict[int, Content]


def replay(trace: ProgramTrace, choose: Choose = min) -> None:
    """Raise `ProofError` unless every rank ends with what it wants, each contribution exactly once."""
    run = _Run(trace)
    while run.ready:
        run.start(choose(sorted(run.ready)))
    run.check()


class _Run:
    def __init__(self, trace: ProgramTrace) -> None:
        self.trace = trace
        self.copies: dict[Place, Content] = {
            (rank, chunk): Counter({rank: 1}) for rank, held in enumerate(trace.holds) for chunk in held
        }
        self.mail: dict[tuple[int, int, int], Message] = {}
        self.arrived: dict[Place, Message] = {}
        self.left: dict[Place, int] = {}
        self.following: defaultdict[Place, list[Place]] = defaultdict(list)
        self.waiting: dict[tuple[int, int, int], Place] = {}
        """Receives that could start if their message were there."""
        self.ready: set[Place] = set()
        for rank, nodes in enumerate(trace.nodes):
            for node in nodes.values():
                waits = {*node.data_deps, *node.ctrl_deps}
                self.left[rank, node.id] = len(waits)
                for waited in waits:
                    self.following[rank, waited].append((rank, node.id))
        for place, count in self.left.items():
            if count == 0:
                self._free(place)

    def start(self, place: Place) -> None:
        """Do all of a node at once."""
        self.ready.discard(place)
        rank, node = place[0], self._node(place)
        if node.type == NodeType.COMM_SEND:
            self._send(rank, node)
        elif node.type == NodeType.COMM_RECV:
            message = self.mail.pop(self._key(place))
            if node.attributes.get(names.ADDS):
                self.arrived[place] = message
            else:
                self.copies |= {(rank, chunk): Counter(content) for chunk, content in message.items()}
        elif names.ARRIVAL in node.attributes:
            received = node.whole(names.ARRIVAL)
            if (rank, received) not in self.arrived:
                raise ProofError(
                    f"{self.trace.name}: node {node.id} of rank {rank} adds what node {received} received, which has "
                    "received nothing to add"
                )
            for chunk, content in self.arrived.pop((rank, received)).items():
                self.copies[rank, chunk] = self.copies.get((rank, chunk), Counter()) + content
        del self.left[place]
        for later in self.following[place]:
            self.left[later] -= 1
            if self.left[later] == 0:
                self._free(later)

    def _send(self, rank: int, node: Node) -> None:
        key = rank, node.whole("comm_dst", -1), node.whole("comm_tag")
        held = {chunk: self.copies.get((rank, chunk), Counter()) for chunk in chunks_of(self.trace, rank, node)}
        self.mail[key] = {chunk: Counter(content) for chunk, content in held.items()}
        if key in self.waiting:
            self.ready.add(self.waiting.pop(key))

    def _free(self, place: Place) -> None:
        """All that a node waits for is done; a receive still needs its message."""
        if self._node(place).type == NodeType.COMM_RECV and self._key(place) not in self.mail:
            self.waiting[self._key(place)] = place
        else:
            self.ready.add(place)

    def _node(self, place: Place) -> Node:
        return self.trace.nodes[place[0]][place[1]]

    def _key(self, place: Place) -> tuple[int, int, int]:
        node = self._node(place)
        return node.whole("comm_src", -1), place[0], node.whole("comm_tag")

    def check(self) -> None:
        if self.left:
            rank, number = min(self.left)
            raise ProofError(
                f"{self.trace.name}: {len(self.left)} nodes never start, the first is node {number} of rank {rank}"
            )
        given: defaultdict[int, Content] = defaultdict(Counter)
        for rank, held in enumerate(self.trace.holds):
            for chunk in held:
                given[chunk][rank] = 1
        for rank, wanted in enumerate(self.trace.wants):
            for chunk in wanted:
                copy = self.copies.get((rank, chunk), Counter())
                if copy != given[chunk]:
                    raise ProofError(
                        f"{self.trace.name}: rank {rank} ends with chunk {chunk} as the sum of {dict(copy)}, "
                        f"not of {dict(given[chunk])}"
                    )
