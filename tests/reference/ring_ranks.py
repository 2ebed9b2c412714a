"""Every rank of a ring on its own, in plain Python: what the kernel of one rank that stands for all must equal.

Ranks may have their gradients at times of their own. Nothing here assumes symmetry: a message goes from a rank to the
next one, which mixes it and sends on, each with a port, an adder and a launcher of its own.
"""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np

from ropewalk.overlap.exchange import ChunkExchange
from ropewalk.overlap.ring import RankRing


class Rank:
    def __init__(self, exchange: ChunkExchange, ready_s, launch_s: float) -> None:
        units = len(exchange.unit_key)
        self.ready = list(ready_s)
        self.unit_ready = [max(self.ready[c] for c in np.flatnonzero(exchange.unit == u)) for u in range(units)]
        if exchange.streams:
            self.unit_ready = [max(launch_s, at) for at in self.unit_ready]
        if exchange.in_turn:
            latest = 0.0
            for unit in sorted(range(units), key=lambda u: exchange.unit_key[u]):
                latest = self.unit_ready[unit] = max(latest, self.unit_ready[unit])
        self.launch_s = 0.0 if exchange.streams else launch_s
        self.waiting, self.handed, self.released = [], [], set()
        self.sends, self.adds = [], []
        self.reduced, self.done = set(), {}
        self.port = self.adder = self.launcher = False


class Ranks:
    """All ranks and one clock."""

    def __init__(self, exchange: ChunkExchange, ring: RankRing, ready_s) -> None:
        self.exchange, self.ring = exchange, ring
        self.ranks = [Rank(exchange, ready, ring.launch_s) for ready in ready_s]
        self.rounds = ring.rounds
        self.shard = exchange.chunks.chunk_bytes / ring.ranks
        self.members = [np.flatnonzero(exchange.unit == unit) for unit in range(len(exchange.unit_key))]
        self.events, self.number = [], count()

    def at(self, time, what, *about) -> None:
        heapq.heappush(self.events, (time, next(self.number), what, about))

    def run(self):
        """When each rank has each chunk: ranks x chunks."""
        for rank in self.ranks:
            for unit, time in enumerate(rank.unit_ready):
                self.at(time, self.ready, rank, unit)
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                _, _, what, about = heapq.heappop(self.events)
                what(now, *about)
                if not self.same(now):
                    for rank in self.ranks:
                        self.hand_over(now, rank)
                if not self.same(now):
                    for rank in self.ranks:
                        self.add(now, rank)
            for rank in self.ranks:
                self.send(now, rank)
        chunks = len(self.exchange.chunks)
        return np.array([[rank.done[chunk] for chunk in range(chunks)] for rank in self.ranks])

    def same(self, now) -> bool:
        return bool(self.events) and self.events[0][0] == now

    def ready(self, now, rank, unit) -> None:
        rank.waiting.append(unit)

    def unit_done(self, rank, unit) -> bool:
        return all(chunk in rank.done for chunk in self.members[unit])

    def hand_over(self, now, rank) -> None:
        for unit in rank.handed:
            if unit not in rank.released:
                rank.released.add(unit)
                for chunk in self.members[unit]:
                    self.at(max(now, rank.ready[chunk]), self.begin, rank, chunk)
            if self.exchange.serial and not self.unit_done(rank, unit):
                break
        flying = sum(not self.unit_done(rank, unit) for unit in rank.handed)
        if not rank.launcher and rank.waiting and flying < self.exchange.window:
            unit = min(rank.waiting, key=lambda unit: (self.exchange.unit_key[unit], unit))
            rank.waiting.remove(unit)
            rank.launcher = True
            self.at(now + rank.launch_s, self.launched, rank, unit)

    def launched(self, now, rank, unit) -> None:
        rank.launcher = False
        rank.handed.append(unit)

    def begin(self, now, rank, chunk) -> None:
        rank.sends.append((self.exchange.reduce_key[chunk], chunk, 0))

    def send(self, now, rank) -> None:
        if rank.port or not rank.sends or (rank.adder and not self.exchange.overlaps.mixing):
            return
        message = min(rank.sends)
        rank.sends.remove(message)
        rank.port = True
        took = self.ring.message_s + self.shard[message[1]] / self.ring.bandwidth
        self.at(now + took, self.sent, rank, message)

    def sent(self, now, rank, message) -> None:
        rank.port = False
        behind = self.ranks[(self.ranks.index(rank) + 1) % len(self.ranks)]
        self.at(now + self.ring.latency_s, self.arrived, behind, *message[1:])

    def arrived(self, now, rank, chunk, turn) -> None:
        if turn < self.rounds:
            rank.adds.append((self.exchange.reduce_key[chunk], chunk, turn))
        elif turn + 1 < 2 * self.rounds:
            rank.sends.append((self.exchange.gather_key[chunk], chunk, turn + 1))
        else:
            rank.done[chunk] = now

    def add(self, now, rank) -> None:
        if rank.adder or not rank.adds or (rank.port and not self.exchange.overlaps.mixing):
            return
        message = min(rank.adds)
        rank.adds.remove(message)
        rank.adder = True
        self.at(now + self.shard[message[1]] / self.ring.mixer.rate, self.added, rank, *message[1:])

    def added(self, now, rank, chunk, turn) -> None:
        rank.adder = False
        if turn + 1 < self.rounds:
            rank.sends.append((self.exchange.reduce_key[chunk], chunk, turn + 1))
            return
        rank.reduced.add(chunk)
        held = [chunk]
        if not self.exchange.overlaps.broadcasting:
            held = [int(other) for other in np.flatnonzero(self.exchange.op == self.exchange.op[chunk])]
            if not rank.reduced.issuperset(held):
                return
        for other in held:
            rank.sends.append((self.exchange.gather_key[other], other, turn + 1))


def run_ranks(exchange: ChunkExchange, ring: RankRing, ready_s):
    """When each rank has each chunk; `ready_s` by rank and chunk."""
    return Ranks(exchange, ring, ready_s).run()
