"""Where the chunks of a program lie in the buffers of a collective, as NCCL and its relatives define them.

A program names chunks as it likes. Libraries know an input and an output buffer for each rank and say what stands where
in them: the output of an all-gather, for instance, holds the shard of rank 0, then that of rank 1, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Flags, Ints
from ropewalk.collectives.program import Program
from ropewalk.errors import ProgramError

MOST_PLACES = 1 << 20
"""Ranks times chunks that fit: to lay out and prove a million takes minutes, and no library has room for more."""


@dataclass(frozen=True, eq=False)
class ChunkLayout:
    """Which index of the input and of the output buffer each chunk has at each rank; -1 where it has none."""

    collective: str
    inputs: int
    """Chunks in the input buffer of a rank."""
    outputs: int
    """Chunks in the output buffer of a rank."""
    at_input: Ints
    at_output: Ints
    own: tuple[tuple[tuple[int, int, int], ...], ...]
    """What each rank copies from its input to its output without a network: (input index, output index, chunks)."""


def layout_of(program: Program, collective: str) -> ChunkLayout:
    """The layout of a program that does what `collective` says; refuses programs that do something else.

    >>> from ropewalk.collectives import ring_all_gather
    >>> layout = layout_of(ring_all_gather([[0, 1, 2], [0, 2, 1]]), "allgather")
    >>> layout.inputs, layout.outputs, layout.at_output[0].tolist()
    (2, 6, [0, 2, 4, 1, 3, 5])
    """
    if collective not in LAYOUTS:
        raise ProgramError(f"collective {collective!r} is not known: give one of {', '.join(LAYOUTS)}")
    if program.ranks * program.chunks > MOST_PLACES:
        raise ProgramError(
            f"{program.name} has {program.chunks} chunks on {program.ranks} ranks, more than a plan file can list: "
            "use fewer segments, or a fixed number of trees per root"
        )
    chunks = np.arange(program.chunks)
    return LAYOUTS[collective](_Ends(program, collective, program.pre(chunks), program.post(chunks)))


@dataclass(frozen=True, eq=False)
class _Ends:
    """Who begins with which chunk and who must end with it."""

    program: Program
    collective: str
    pre: Flags
    post: Flags

    @property
    def ranks(self) -> int:
        return self.program.ranks

    @property
    def chunks(self) -> int:
        return self.program.chunks

    def everybody(self, which: str) -> None:
        """Refuse a program in which a rank has no part: a relay or a server that the library's call does not know."""
        absent = np.argwhere(~(self.pre if which == "begins" else self.post))
        if len(absent):
            rank, chunk = (int(x) for x in absent[0])
            verb = "begin" if which == "begins" else "end"
            raise ProgramError(
                f"{self.program.name} is no {self.collective}: rank {rank} does not {verb} with chunk {chunk}; export "
                "a program in which all ranks take part (no relays or servers), or name the right collective"
            )

    def single(self, which: str) -> Ints:
        """The one rank that begins, or ends, with each chunk."""
        mask = self.pre if which == "begins" else self.post
        several = np.flatnonzero(mask.sum(axis=0) != 1)
        if len(several):
            chunk = int(several[0])
            raise ProgramError(
                f"{self.program.name} is no {self.collective}: {int(mask[:, chunk].sum())} ranks {which[:-1]} with "
                f"chunk {chunk} instead of one: name the right collective"
            )
        return np.asarray(mask.argmax(axis=0), np.int64)

    def positions(self, group: Ints, groups: int, absent_ok: Flags | None = None) -> tuple[Ints, int]:
        """The position of each chunk among those of its group, and how many each group has, which must be equal."""
        count = np.bincount(group, minlength=groups)
        expected = count if absent_ok is None else count[~absent_ok | (count > 0)]
        if len(set(expected.tolist())) != 1:
            raise ProgramError(
                f"{self.program.name} splits the buffer into shards of {int(expected.min())} to {int(expected.max())} "
                f"chunks, but {self.collective} of GPU libraries has equal ones: ask for equal shards"
            )
        order = np.argsort(group, kind="stable")
        begins = np.concatenate([[0], np.cumsum(count)])[:-1]
        position = np.empty(len(group), np.int64)
        position[order] = np.arange(len(group)) - begins[group[order]]
        return position, int(expected[0])

    def one_root(self, which: str) -> int:
        roots = np.unique(self.single(which))
        if len(roots) != 1:
            raise ProgramError(
                f"{self.program.name} is no {self.collective}: it has {len(roots)} roots: name the right collective"
            )
        return int(roots[0])

    def at_all(self, index: Ints) -> Ints:
        return np.repeat(index[None, :], self.ranks, axis=0)

    def at_one(self, rank: Ints, index: Ints) -> Ints:
        table = np.full((self.ranks, self.chunks), -1, np.int64)
        table[rank, np.arange(self.chunks)] = index
        return table


def _all_reduce(ends: _Ends) -> ChunkLayout:
    ends.everybody("begins")
    ends.everybody("ends")
    same = ends.at_all(np.arange(ends.chunks))
    return ChunkLayout(ends.collective, ends.chunks, ends.chunks, same, same, ((),) * ends.ranks)


def _all_gather(ends: _Ends) -> ChunkLayout:
    ends.everybody("ends")
    owner = ends.single("begins")
    position, shard = ends.positions(owner, ends.ranks)
    own = tuple(((0, rank * shard, shard),) for rank in range(ends.ranks))
    at_output = ends.at_all(owner * shard + position)
    return ChunkLayout(ends.collective, shard, shard * ends.ranks, ends.at_one(owner, position), at_output, own)


def _reduce_scatter(ends: _Ends) -> ChunkLayout:
    ends.everybody("begins")
    owner = ends.single("ends")
    position, shard = ends.positions(owner, ends.ranks)
    at_input = ends.at_all(owner * shard + position)
    return ChunkLayout(
        ends.collective, shard * ends.ranks, shard, at_input, ends.at_one(owner, position), ((),) * ends.ranks
    )


def _all_to_all(ends: _Ends) -> ChunkLayout:
    source, target = ends.single("begins"), ends.single("ends")
    # A program may leave out what ranks keep; libraries do not, so it is copied either way.
    kept = np.eye(ends.ranks, dtype=bool).ravel()
    position, share = ends.positions(source * ends.ranks + target, ends.ranks**2, absent_ok=kept)
    size = share * ends.ranks
    own = tuple(((rank * share, rank * share, share),) for rank in range(ends.ranks))
    at_input = ends.at_one(source, target * share + position)
    return ChunkLayout(ends.collective, size, size, at_input, ends.at_one(target, source * share + position), own)


def _broadcast(ends: _Ends) -> ChunkLayout:
    ends.everybody("ends")
    root = ends.one_root("begins")
    index = np.arange(ends.chunks)
    own = tuple(((0, 0, ends.chunks),) if rank == root else () for rank in range(ends.ranks))
    at_input = ends.at_one(np.full(ends.chunks, root), index)
    return ChunkLayout(ends.collective, ends.chunks, ends.chunks, at_input, ends.at_all(index), own)


def _reduce(ends: _Ends) -> ChunkLayout:
    ends.everybody("begins")
    root = ends.one_root("ends")
    index = np.arange(ends.chunks)
    at_output = ends.at_one(np.full(ends.chunks, root), index)
    return ChunkLayout(ends.collective, ends.chunks, ends.chunks, ends.at_all(index), at_output, ((),) * ends.ranks)


LAYOUTS: dict[str, Callable[[_Ends], ChunkLayout]] = {
    "allgather": _all_gather,
    "reducescatter": _reduce_scatter,
    "allreduce": _all_reduce,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "alltoall": _all_to_all,
}
