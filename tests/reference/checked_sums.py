"""The numbers of a collective while it runs, plainly: sent as they are then, added in the order of rounds, checked."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ropewalk.arrays import Ints32
from ropewalk.lab.job import Data

MOST_NAMED = 5


class CheckedSums:
    """What every rank holds of every chunk.

    A slot, a rank in one lane, goes through its rounds in order: what arrives for a later round waits until everything
    that the slot sends and receives in earlier rounds is done.
    """

    def __init__(self, data: Data) -> None:
        self.data = data
        self.pattern = np.arange(data.chunk_items, dtype=np.int32) % 97 + 1
        self.held: list[dict[int, Ints32]] = [{} for _ in range(data.ranks)]
        for rank, chunk in zip(*(ends.tolist() for ends in np.nonzero(data.has)), strict=True):
            self.held[rank][chunk] = self._brought(chunk, rank + 1)
        self._rounds: dict[int, list[int]] = defaultdict(list)
        """By slot: the rounds it takes part in, the last one first."""
        self._open: dict[tuple[int, int], int] = defaultdict(int)
        """By slot and round: transfers that are not done."""
        self._waiting: dict[tuple[int, int], list[tuple[int, bytes]]] = defaultdict(list)
        for one in data.carried.values():
            for slot in (one.src_slot, one.dst_slot):
                self._open[slot, one.round] += 1
        for slot, number in sorted(self._open, reverse=True):
            self._rounds[slot].append(number)

    def _brought(self, chunk: int, factor: int) -> Ints32:
        """What a rank brings to a chunk is a pattern times its number, so the sum is the pattern times a sum."""
        return ((self.pattern + chunk % 89) * np.int32(factor)).astype(np.int32)

    def sent(self, task: int) -> bytes:
        """What a transfer carries, as its rank holds it now."""
        one = self.data.carried[task]
        held = self.held[one.src_slot // self.data.lanes]
        zeros = np.zeros(self.data.chunk_items, np.int32)
        return np.concatenate([held.get(chunk, zeros) for chunk in one.chunks]).tobytes()

    def arrived(self, task: int, content: bytes) -> None:
        """A transfer is done: both its slots may finish their round, and take what they were sent in it."""
        one = self.data.carried[task]
        self._waiting[one.dst_slot, one.round].append((task, content))
        for slot in (one.src_slot, one.dst_slot):
            self._open[slot, one.round] -= 1
        for slot in (one.src_slot, one.dst_slot):
            rounds = self._rounds[slot]
            while rounds and not self._open[slot, rounds[-1]]:
                for taken, numbers in sorted(self._waiting.pop((slot, rounds.pop()), [])):
                    self._take(taken, numbers)

    def _take(self, task: int, content: bytes) -> None:
        one = self.data.carried[task]
        held = self.held[one.dst_slot // self.data.lanes]
        for chunk, numbers in zip(
            one.chunks, np.frombuffer(content, np.int32).reshape(len(one.chunks), -1), strict=True
        ):
            held[chunk] = held[chunk] + numbers if one.adds and chunk in held else numbers.copy()

    def wrong(self) -> list[str]:
        """Ranks that do not end with the sum of exactly what was brought, the first few by name."""
        found = []
        factor = self.data.has.T.astype(np.int64) @ np.arange(1, self.data.ranks + 1)
        for rank, chunk in zip(*(ends.tolist() for ends in np.nonzero(self.data.gets)), strict=True):
            held = self.held[rank].get(chunk)
            if held is None or not np.array_equal(held, self._brought(chunk, int(factor[chunk]))):
                found.append(f"rank {rank} has a wrong result for chunk {chunk}")
        return found[:MOST_NAMED]
