"""The ranks of a lab in one process: it has sockets in the namespaces of all hosts and moves what a job says over TCP.

One process instead of one per host is lighter on few cores, and it sees every arrival at once: a transfer is done when
its last byte has arrived, as in the simulator, and whatever waits for it starts then. Computing is a timed wait.
"""

from __future__ import annotations

import ctypes
import select
import socket
import struct
from typing import Any

import numpy as np

from ropewalk.lab.job import FIRST_PORT, PORT, LabJob
from ropewalk.lab.namespaces import held, inside
from ropewalk.lab.network import host_address
from ropewalk.lab.rank_loop import ABANDONED, ABANDONED_NUMBER, CLOSED, DONE, EVENT_NUMBER, EVENT_WORDS, run
from ropewalk.lab.rank_state import LEFT, STALLS, ChunkMemory, RankState, fresh, longest_chain, state_of

_REQUESTS = 0
"""Standard input, on which the command that wants the run speaks."""


class Stuck(RuntimeError):
    """Transfers that do not arrive in the time they were given, with those that are under way: (task, silent since)."""

    def __init__(self, what: str, silent: list[tuple[int, float]] | None = None) -> None:
        super().__init__(what)
        self.silent = silent or []


class Ranks:
    """Connections of a job, which stay for all its runs."""

    def __init__(self, job: LabJob, holder: int) -> None:
        self.job = job
        self._sockets: list[socket.socket] = []
        outgoing, incoming = self._connected(holder)
        self.loop = RankLoop(job, outgoing, incoming)

    def _connected(self, holder: int) -> tuple[list[int], list[int]]:
        """Listen on every address that is used, and connect from known ports; the sockets of both ends."""
        listening, outgoing, incoming = {}, [], []
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
            taken, _ = listening[one.dst, one.path].accept()
            self._tuned(taken)
            outgoing.append(made.fileno())
            incoming.append(taken.fileno())
            self._sockets += [made, taken]
        for server in listening.values():
            server.close()
        return outgoing, incoming

    def _tuned(self, made: socket.socket) -> None:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.job.congestion.encode())

    def close(self) -> None:
        """End all connections at once, so that the next job can have their ports."""
        for one in self._sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()
        self.loop.close()


class RankLoop:
    """A job over sockets that are connected already, one pair for each of its connections."""

    def __init__(self, job: LabJob, outgoing: list[int], incoming: list[int], asked: int = _REQUESTS) -> None:
        self.began = 0.0
        """Of the latest run, by `time.perf_counter`."""
        self.chain = longest_chain(job.graph)
        """Tasks that follow each other."""
        self._memory = ChunkMemory(job.data)
        self._first = state_of(job, self._memory, outgoing, incoming)
        self._epoll = select.epoll()
        # The kernel says when nobody asks any more; a line that comes while a run is under way stops it.
        _watch(self._epoll, asked, select.EPOLLIN, ABANDONED_NUMBER)
        for connection, descriptor in enumerate(incoming):
            _watch(self._epoll, descriptor, select.EPOLLIN, 2 * connection)
        self._compile()

    def _compile(self) -> None:
        """Have the loop ready before time counts: a run of no tasks."""
        counts = np.zeros_like(self._first.counts)
        run(self._first._replace(counts=counts), self._epoll.fileno(), 0.0)

    def close(self) -> None:
        self._epoll.close()

    def run(self, limit_s: float) -> dict[str, list[Any]]:
        """Start and end of every task, what stalled, and everything that is wrong with the data afterwards."""
        state = fresh(self._first)
        status, self.began = run(state, self._epoll.fileno(), limit_s)
        if status != DONE:
            raise _stuck(status, state, limit_s)
        some = slice(0, int(state.counts[STALLS]))
        stalls = zip(
            state.stall_task[some].tolist(),
            state.stall_since[some].tolist(),
            state.stall_until[some].tolist(),
            strict=True,
        )
        wrong = self._memory.wrong(state.held, state.present)
        return {"start": state.start.tolist(), "end": state.end.tolist(), "stalls": list(stalls), "wrong": wrong}


def _watch(epoll: select.epoll, descriptor: int, events: int, number: int) -> None:
    """Have epoll name a descriptor by a number of ours."""
    words = [0] * EVENT_WORDS
    words[0], words[EVENT_NUMBER] = events, number
    library = ctypes.CDLL(None, use_errno=True)
    library.epoll_ctl(epoll.fileno(), 1, descriptor, struct.pack(f"={EVENT_WORDS}I", *words))


def _stuck(status: int, state: RankState, limit_s: float) -> Stuck:
    if status == ABANDONED:
        return Stuck("the command that started the run stopped it or ended")
    if status == CLOSED:
        return Stuck("a connection was closed")
    under_way = np.flatnonzero(state.receiving >= 0)
    tasks = state.part_task[state.receiving[under_way]].tolist()
    return Stuck(
        f"{int(state.counts[LEFT])} of {len(state.end)} tasks are not done after {limit_s:.0f} s",
        list(zip(tasks, state.heard[under_way].tolist(), strict=True)),
    )
