"""What a rank of the streamed all-reduce does next: it takes the most urgent chunk that can be sent or added.

Nothing here waits, and nothing knows time or tensors: events come in, decisions go out. Ranks may decide differently.
That cannot stop them: a message needs only what its sender has, and every receiver has a slot for every message
beforehand. Messages of one chunk leave in the order of rounds, and its next step begins behind the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from ropewalk.execute.overlap.order import Stream
from ropewalk.execute.overlap.stream.ring import RingPlace

Message = tuple[int, int]
"""(chunk, round)."""


@dataclass
class _Chunk:
    """How far a chunk is in its step."""

    launch: int
    phase: int
    """The fused tensor whose reduction its broadcast waits for, where the two do not overlap."""
    open: bool = False
    """Its gradients are in the buffer, and what has been received has not all been sent on."""
    got: int = 0
    """Messages that have arrived, those of the next step included."""
    added: int = 0
    sent: int = 0
    wants_to_send: bool = False
    wants_to_add: bool = False
    complete: bool = False
    may_gather: bool = False
    """Its whole fused tensor is reduced."""


class RankDesk:
    """Decides for one rank; a launch is a row of chunks that become ready together.

    >>> desk = RankDesk(RingPlace(2, 0), [(0,), (1,)])
    >>> desk.begin(1)  # the gradients of chunk 1 exist first
    >>> desk.next_send()
    (1, 0)
    >>> desk.begin(0)
    >>> desk.arrived(1), desk.next_add()
    (0, (1, 0))
    >>> desk.sent(1)
    >>> desk.next_send()  # chunk 0 is more urgent
    (0, 0)
    """

    def __init__(self, ring: RingPlace, launches: Sequence[Sequence[int]], stream: Stream | None = None) -> None:
        self.ring = ring
        self.launches = launches
        self.stream = stream or Stream()
        in_turn = self.stream.window is not None
        of_chunk = sorted((chunk, number) for number, launch in enumerate(launches) for chunk in launch)
        self._chunks = [_Chunk(number, number if in_turn else 0) for _, number in of_chunk]
        self._phase_chunks = [len(launch) for launch in launches] if in_turn else [len(of_chunk)]
        everything = tuple(range(len(of_chunk)))
        self._reduce_key = self.stream.reduce_key or everything
        self._gather_key = self.stream.gather_key or everything
        self._unreduced = [0] * len(self._phase_chunks)
        self._incomplete = [0] * len(launches)
        self._ready: set[int] = set()
        self._turn = 0
        self._under_way = 0
        self._sends: list[tuple[int, int]] = []
        self._adds: list[tuple[int, int]] = []
        self._sending = self._adding = False
        self._completed: list[int] = []

    @property
    def idle(self) -> bool:
        """Nothing is under way or waits for its turn."""
        return not self._ready and not any(chunk.open for chunk in self._chunks)

    @property
    def expects(self) -> bool:
        """Some message of this step has not arrived."""
        return bool(self._ready) or any(chunk.open and chunk.got < self.ring.rounds for chunk in self._chunks)

    def free(self, chunk: int) -> bool:
        """Whether the buffer of a chunk may be written: its last step is over, and no new one has begun."""
        return not self._chunks[chunk].open

    def begin(self, launch: int) -> None:
        """All gradients of a launch are in the buffer."""
        self._ready.add(launch)
        self._begin_ready()

    def arrived(self, chunk: int) -> int:
        """The next message of a chunk is here; its round."""
        state = self._chunks[chunk]
        turn = state.got % self.ring.rounds
        state.got += 1
        self._look_at(chunk)
        return turn

    def added(self, chunk: int) -> None:
        """What `next_add` named has been added."""
        state = self._chunks[chunk]
        self._adding = state.wants_to_add = False
        state.added += 1
        if state.added == self.ring.reducing:
            self._unreduced[state.phase] -= 1
            if not self._unreduced[state.phase]:
                self._let_gather(state.phase)
        self._look_at(chunk)

    def sent(self, chunk: int) -> None:
        """What `next_send` named has left."""
        state = self._chunks[chunk]
        self._sending = state.wants_to_send = False
        state.sent += 1
        self._look_at(chunk)

    @property
    def can_send(self) -> bool:
        """Whether `next_send` names a message."""
        return bool(self._sends) and not self._sending and (self.stream.mix or not (self._adding or bool(self._adds)))

    @property
    def can_add(self) -> bool:
        """Whether `next_add` names a message."""
        return bool(self._adds) and not self._adding and (self.stream.mix or not self._sending)

    def next_send(self) -> Message | None:
        """The message to send now, if the port is free and there is one."""
        if not self.can_send:
            return None
        _, chunk = heappop(self._sends)
        self._sending = True
        return chunk, self._chunks[chunk].sent

    def next_add(self) -> Message | None:
        """The message to add now, if the adder is free and there is one."""
        if not self.can_add:
            return None
        _, chunk = heappop(self._adds)
        self._adding = True
        return chunk, self._chunks[chunk].added

    def completed(self) -> list[int]:
        """Chunks that have become complete since this was asked last: every shard of them is here and summed up."""
        done, self._completed = self._completed, []
        return done

    def _begin_ready(self) -> None:
        if self.stream.window is None:
            for launch in sorted(self._ready):
                self._open(launch)
            return
        while self._turn in self._ready and self._under_way < self.stream.window:
            self._open(self._turn)
            self._turn = (self._turn + 1) % len(self.launches)

    def _open(self, launch: int) -> None:
        self._ready.discard(launch)
        self._incomplete[launch] = len(self.launches[launch])
        self._under_way += 1
        for number in self.launches[launch]:
            chunk = self._chunks[number]
            if not self._unreduced[chunk.phase]:
                self._unreduced[chunk.phase] = self._phase_chunks[chunk.phase]
            chunk.open = True
        for number in self.launches[launch]:
            self._look_at(number)

    def _look_at(self, number: int) -> None:
        """Queue what a chunk can do now, and note where it is complete or over."""
        chunk, reducing, rounds = self._chunks[number], self.ring.reducing, self.ring.rounds
        if not chunk.open:
            return
        if not chunk.wants_to_add and chunk.added < min(reducing, chunk.got):
            chunk.wants_to_add = True
            heappush(self._adds, (self._reduce_key[number], number))
        if not chunk.wants_to_send and chunk.sent < rounds:
            here = chunk.added if chunk.sent <= reducing else chunk.got
            if here >= chunk.sent:
                self._ask_to_send(number, chunk)
        if not chunk.complete and chunk.got >= rounds and chunk.added == reducing:
            chunk.complete = True
            self._completed.append(number)
        if chunk.complete and chunk.sent == rounds:
            chunk.open = chunk.complete = chunk.may_gather = False
            chunk.got -= rounds
            chunk.added = chunk.sent = 0
            self._close(chunk.launch)

    def _ask_to_send(self, number: int, chunk: _Chunk) -> None:
        gathers = chunk.sent >= self.ring.reducing
        if gathers and not self.stream.broadcast and not chunk.may_gather:
            return
        chunk.wants_to_send = True
        heappush(self._sends, ((self._gather_key if gathers else self._reduce_key)[number], number))

    def _let_gather(self, phase: int) -> None:
        """All chunks of a fused tensor are reduced; some of their messages may leave steps of others behind."""
        members = [number for number, chunk in enumerate(self._chunks) if chunk.phase == phase]
        for number in members:
            self._chunks[number].may_gather = True
        for number in members:
            self._look_at(number)

    def _close(self, launch: int) -> None:
        """A chunk of a launch is over; with the last one another launch may begin."""
        self._incomplete[launch] -= 1
        if not self._incomplete[launch]:
            self._under_way -= 1
            self._begin_ready()
