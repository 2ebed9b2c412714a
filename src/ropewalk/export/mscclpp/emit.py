"""The operations of one thread block, with its threads synchronised where one operation needs another.

An operation is carried out by all threads of a block, each at its own pace: only some of them wait or signal, and
nothing holds the others back. A `nop` synchronises them. It is needed between a wait and whatever relies on it, between
copies and the signal that announces them, and between two copies that touch the same chunks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.export.mscclpp.plan import (
    MEMORY,
    MOST_PER_OPERATION,
    MOST_SEMAPHORES_PER_OPERATION,
    ChunkSpan,
    Operation,
    ThreadBlock,
)


class Emitter:
    """Appends operations to a thread block; `remotes` numbers the remote buffers of the whole rank."""

    def __init__(self, remotes: dict[tuple[int, str, str], int]) -> None:
        self.remotes = remotes
        self.operations: list[Operation] = []
        self.channels: dict[str, list[int]] = {}
        self.remote_refs: dict[str, list[int]] = {}
        self.waited = False
        self.copied: list[tuple[list[ChunkSpan], list[ChunkSpan]]] = []
        """What has been (read, written) here since the threads were last synchronised."""

    def block(self) -> ThreadBlock:
        return ThreadBlock(
            tuple(self.operations),
            {kind: tuple(ids) for kind, ids in sorted(self.channels.items())},
            {kind: tuple(ids) for kind, ids in sorted(self.remote_refs.items())},
        )

    def signal(self, kind: str, channels: Sequence[int]) -> None:
        if channels:
            self._synchronise(self.waited or bool(self.copied))
        for some in _parts([self._channel(kind, number) for number in channels], MOST_PER_OPERATION):
            self.operations.append(Operation("signal", channel_type=kind, channels=some))

    def wait(self, kind: str, channels: Sequence[int]) -> None:
        for some in _parts([self._channel(kind, number) for number in channels], MOST_PER_OPERATION):
            self.operations.append(Operation("wait", channel_type=kind, channels=some))
            self.waited = True

    def acquire(self, semaphores: Sequence[int]) -> None:
        for some in _parts(semaphores, MOST_SEMAPHORES_PER_OPERATION):
            self.operations.append(Operation("sem_acquire", semaphores=some))
            self.waited = True

    def release(self, semaphores: Sequence[int]) -> None:
        if semaphores:
            self._synchronise(self.waited or bool(self.copied))
        for some in _parts(semaphores, MOST_SEMAPHORES_PER_OPERATION):
            self.operations.append(Operation("sem_release", semaphores=some))

    def copy(self, source: ChunkSpan, target: ChunkSpan) -> None:
        self._before_copy([source], [target])
        self.operations.append(Operation("copy", (source,), (target,)))

    def reduce(self, operands: list[ChunkSpan], target: ChunkSpan) -> None:
        self._before_copy(operands, [target])
        self.operations.append(Operation("re", tuple(operands), (target,)))

    def put(
        self, kind: str, channel: int, spans: Sequence[tuple[ChunkSpan, tuple[int, str], int]], *, finish: bool
    ) -> None:
        """Copy spans to (rank, buffer) at an index and signal; to finish is to wait until an adapter has copied."""
        number = self._channel(kind, channel)
        pairs = [
            (source, ChunkSpan(index, source.size, remote=self._remote(*remote, kind)))
            for source, remote, index in spans
        ]
        self._before_copy([source for source, _ in pairs], [])
        if kind == MEMORY:
            for group in _same_buffer(pairs):
                sources, targets = tuple(pair[0] for pair in group), tuple(pair[1] for pair in group)
                self.operations.append(Operation("put", sources, targets, kind))
            self.signal(kind, [channel])
            return
        for source, target in pairs[:-1]:
            self.operations.append(Operation("put", (source,), (target,), kind, (number,)))
        source, target = pairs[-1]
        self.operations.append(Operation("pwsf" if finish else "pws", (source,), (target,), kind, (number,)))
        self.waited = self.waited or finish

    def _channel(self, kind: str, number: int) -> int:
        ids = self.channels.setdefault(kind, [])
        if number not in ids:
            ids.append(number)
        return ids.index(number)

    def _remote(self, rank: int, buffer: str, kind: str) -> int:
        number = self.remotes.setdefault((rank, buffer, kind), len(self.remotes))
        refs = self.remote_refs.setdefault(kind, [])
        if number not in refs:
            refs.append(number)
        return refs.index(number)

    def _before_copy(self, reads: list[ChunkSpan], writes: list[ChunkSpan]) -> None:
        clash = any(
            _overlap(writes, read_before + written_before) or _overlap(reads, written_before)
            for read_before, written_before in self.copied
        )
        self._synchronise(self.waited or clash)
        self.copied.append((reads, writes))

    def _synchronise(self, needed: bool) -> None:
        if needed:
            self.operations.append(Operation("nop"))
            self.waited = False
            self.copied = []


def _parts(numbers: Sequence[int], most: int) -> list[tuple[int, ...]]:
    return [tuple(numbers[low : low + most]) for low in range(0, len(numbers), most)]


def _same_buffer(pairs: list[tuple[ChunkSpan, ChunkSpan]]) -> list[list[tuple[ChunkSpan, ChunkSpan]]]:
    """One put reads from one local buffer, whatever its spans say, and has room for so many of them."""
    groups: list[list[tuple[ChunkSpan, ChunkSpan]]] = []
    for pair in pairs:
        if groups and groups[-1][0][0].buffer == pair[0].buffer and len(groups[-1]) < MOST_PER_OPERATION:
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return groups


def _overlap(some: list[ChunkSpan], others: list[ChunkSpan]) -> bool:
    return any(
        one.buffer == other.buffer and one.index < other.index + other.size and other.index < one.index + one.size
        for one in some
        for other in others
    )
