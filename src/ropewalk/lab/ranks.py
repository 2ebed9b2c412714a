"""The ranks of a lab in one process: it has sockets in the namespaces of all hosts and moves what a job says over TCP.

One process instead of one per host is lighter on few cores, and it sees every arrival at once: a transfer is done when
its last byte has arrived, as in the simulator, and whatever waits for it starts then. Computing is a timed wait.
"""

from __future__ import annotations

import heapq
import select
import socket
import struct
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice

from ropewalk.lab.job import FIRST_PORT, PORT, LabJob
from ropewalk.lab.namespaces import held, inside
from ropewalk.lab.network import host_address
from ropewalk.lab.sums import CheckedSums
from ropewalk.task import Kind

_REQUESTS = 0
"""Standard input, on which the command that wants the run speaks."""
_HEADER = struct.Struct("<II")
_READ_BYTES = 1 << 18
_BUFFERS_AT_ONCE = 64


@dataclass
class Outgoing:
    """What waits to be sent on a connection."""

    socket: socket.socket
    waiting: deque[memoryview] = field(default_factory=deque)


@dataclass
class Incoming:
    """What has arrived of the message that a connection is carrying."""

    socket: socket.socket
    connection: int
    header: bytearray = field(default_factory=bytearray)
    task: int = -1
    missing: int = 0
    content: bytearray = field(default_factory=bytearray)


class Stuck(RuntimeError):
    """Transfers that do not arrive in the time they were given."""


class Ranks:
    """Connections of a job, which stay for all its runs."""

    def __init__(self, job: LabJob, holder: int) -> None:
        self.job = job
        graph = job.graph
        self._kind, self._amount = graph.kind.tolist(), graph.amount.tolist()
        self._start_up, self._priority = graph.start_up.tolist(), graph.priority.tolist()
        self._engine_of = list(zip(graph.place.tolist(), graph.stream.tolist(), strict=True))
        self._waits = (graph.dep_start[1:] - graph.dep_start[:-1]).tolist()
        self._after: list[list[int]] = [[] for _ in range(graph.tasks)]
        for task in range(graph.tasks):
            for before in graph.dep[graph.dep_start[task] : graph.dep_start[task + 1]].tolist():
                self._after[before].append(task)
        self._epoll = select.epoll()
        self._epoll.register(_REQUESTS, 0)  # the kernel says when nobody asks any more
        self._out: list[Outgoing] = []
        self._in: dict[int, Incoming] = {}
        self._connect(holder)

    def _connect(self, holder: int) -> None:
        """Listen on every address that is used, connect from known ports, and tell connections by them."""
        listening = {}
        for dst, path in dict.fromkeys((one.dst, one.path) for one in self.job.connections):
            with inside(held(holder, dst)):
                listening[dst, path] = socket.create_server((host_address(dst, path), PORT), backlog=4096)
        for number, one in enumerate(self.job.connections):
            with inside(held(holder, one.src)):
                made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._tuned(made)
            made.bind((host_address(one.src, one.path), FIRST_PORT + number))
            made.settimeout(20.0)
            made.connect((host_address(one.dst, one.path), PORT))
            made.setblocking(False)
            self._out.append(Outgoing(made))
            taken, (_, port) = listening[one.dst, one.path].accept()
            self._tuned(taken)
            taken.setblocking(False)
            self._in[taken.fileno()] = Incoming(taken, port - FIRST_PORT)
            self._epoll.register(taken.fileno(), select.EPOLLIN)
        for server in listening.values():
            server.close()
        self._sending = {out.socket.fileno(): out for out in self._out}

    def _tuned(self, made: socket.socket) -> None:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.job.congestion.encode())

    def run(self, limit_s: float) -> tuple[list[float], list[float], list[str]]:
        """Start and end of every task, and everything that is wrong with the data afterwards."""
        run = _Run(self, limit_s)
        run.loop()
        return run.start, run.end, [wrong for sums in run.sums for wrong in sums.wrong()]


class _Run:
    """One run of the job."""

    def __init__(self, ranks: Ranks, limit_s: float) -> None:
        self.ranks, self.job, self.limit_s = ranks, ranks.job, limit_s
        tasks = ranks.job.graph.tasks
        self.start, self.end = [-1.0] * tasks, [-1.0] * tasks
        self.waits = list(ranks._waits)
        self.left = tasks
        self.sums = [CheckedSums(data) for data in self.job.data]
        self.sums_of = {task: sums for sums in self.sums for task in sums.data.carried}
        self.parts: dict[int, dict[int, bytes]] = defaultdict(dict)
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.number = count()
        self.busy: set[tuple[int, int]] = set()
        self.queued: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self.ready: deque[int] = deque()
        self.buffer = bytearray(_READ_BYTES)

    def now(self) -> float:
        return time.perf_counter() - self.began

    def loop(self) -> None:
        self.began = time.perf_counter()
        self.ready.extend(task for task, waits in enumerate(self.waits) if not waits)
        self._begin_ready()
        while self.left:
            for descriptor, _ in self.ranks._epoll.poll(self._patience()):
                if descriptor == _REQUESTS:
                    raise Stuck("the command that asked for the run has ended")
                if descriptor in self.ranks._sending:
                    self._write(self.ranks._sending[descriptor])
                else:
                    self._read(self.ranks._in[descriptor])
            while self.timers and self.timers[0][0] <= self.now():
                heapq.heappop(self.timers)[2]()
            self._begin_ready()
            if self.now() > self.limit_s:
                raise Stuck(f"{self.left} of {len(self.end)} tasks are not done after {self.limit_s:.0f} s")

    def _patience(self) -> float:
        """Until the next timer, and never longer than a second."""
        return min(max(self.timers[0][0] - self.now(), 0.0), 1.0) if self.timers else 1.0

    def _begin_ready(self) -> None:
        while self.ready:
            task = self.ready.popleft()
            kind = self.ranks._kind[task]
            if kind == Kind.TRANSFER:
                self._after(self.ranks._start_up[task], partial(self._send, task))
            elif kind == Kind.COMPUTE:
                heapq.heappush(self.queued[self.ranks._engine_of[task]], (self.ranks._priority[task], task))
                self._compute(self.ranks._engine_of[task])
            else:
                self.start[task] = self.now()
                self._done(task)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something after some seconds; at once where there are none."""
        if seconds <= 0:
            act()
        else:
            heapq.heappush(self.timers, (self.now() + seconds, next(self.number), act))

    def _compute(self, engine: tuple[int, int]) -> None:
        """Let the most urgent task of a stream compute, if the stream is free."""
        if engine in self.busy or not self.queued[engine]:
            return
        _, task = heapq.heappop(self.queued[engine])
        self.busy.add(engine)
        self.start[task] = self.now()

        def finished() -> None:
            self.busy.discard(engine)
            self._done(task)
            self._compute(engine)

        self._after(self.ranks._amount[task], finished)

    def _send(self, task: int) -> None:
        self.start[task] = self.now()
        content = memoryview(self._content(task))
        at = 0
        for connection, size in self.job.parts[task]:
            out = self.ranks._out[connection]
            idle = not out.waiting
            out.waiting.append(memoryview(_HEADER.pack(task, size)))
            if size:
                out.waiting.append(content[at : at + size])
            at += size
            if idle:
                self.ranks._epoll.register(out.socket.fileno(), select.EPOLLOUT)

    def _content(self, task: int) -> bytes:
        if task in self.sums_of:
            return self.sums_of[task].sent(task)
        return bytes(sum(size for _, size in self.job.parts[task]))

    def _write(self, out: Outgoing) -> None:
        """Hand over as much as the kernel takes, headers and contents together."""
        while out.waiting:
            some = list(islice(out.waiting, _BUFFERS_AT_ONCE))
            try:
                sent = out.socket.sendmsg(some)
            except BlockingIOError:
                return
            for buffer in some:
                if sent < len(buffer):
                    out.waiting[0] = buffer[sent:]
                    return
                sent -= len(buffer)
                out.waiting.popleft()
        self.ranks._epoll.unregister(out.socket.fileno())

    def _read(self, incoming: Incoming) -> None:
        try:
            size = incoming.socket.recv_into(self.buffer)
        except BlockingIOError:
            return
        if not size:
            raise Stuck("a connection was closed")
        view = memoryview(self.buffer)[:size]
        while len(view):
            if incoming.task < 0:
                taken = _HEADER.size - len(incoming.header)
                incoming.header += view[:taken]
                view = view[taken:]
                if len(incoming.header) < _HEADER.size:
                    return
                incoming.task, incoming.missing = _HEADER.unpack(incoming.header)
            part = view[: incoming.missing]
            incoming.content += part
            incoming.missing -= len(part)
            view = view[len(part) :]
            if not incoming.missing:
                self._arrived(incoming)

    def _arrived(self, incoming: Incoming) -> None:
        task = incoming.task
        self.parts[task][incoming.connection] = bytes(incoming.content)
        incoming.task, incoming.header, incoming.content = -1, bytearray(), bytearray()
        if len(self.parts[task]) == len(self.job.parts[task]):
            whole = b"".join(self.parts[task][connection] for connection, _ in self.job.parts[task])
            del self.parts[task]
            if task in self.sums_of:
                self.sums_of[task].arrived(task, whole)
            self._done(task)

    def _done(self, task: int) -> None:
        self.end[task] = self.now()
        self.left -= 1
        for later in self.ranks._after[task]:
            self.waits[later] -= 1
            if not self.waits[later]:
                self.ready.append(later)
