"""Streams of a model's gradients through other collectives than a ring, simulated on the fabric of its cluster.

The fused buffer is cut into a few pieces in the order of the next forward pass, and they follow each other through the
rounds of a collective. Trees gain most: reductions climb while results come down, which a plain tree does in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.collectives.act import Act
from ropewalk.collectives.fused import Piece, reducing_rounds, streamed_program
from ropewalk.collectives.group import Group, whole_fabric
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.collectives.program import Program
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.fabric import Fabric
from ropewalk.overlap.stream_plan import cut_evenly
from ropewalk.overlap.tensors import Tensors
from ropewalk.routing import Routes, shortest
from ropewalk.sim import simulate
from ropewalk.task import TaskKind, lockstep, unroll

PIECES = 6
"""Pieces of about equal bytes in which the buffer is streamed."""
FINEST = 8
"""Chunks of the largest piece: sizes of pieces are rounded to them."""
NAMES = ("ring", "halving-doubling", "hips", "binomial", "double-tree")
MOST_SENDS = 150_000
"""Sends of a streamed program beyond which it is not simulated."""


@dataclass(frozen=True)
class FabricStream:
    """One collective on the fabric: the fused buffer as a whole, and streamed."""

    collective: str
    about: str
    whole_s: float
    """All tensors are complete at the end."""
    apart: int
    """Rounds between two pieces, the best of those that were tried."""
    streamed_s: float
    """The last tensor is complete on all ranks."""
    complete_s: tuple[float, ...]
    """When each piece of the model, from the first layer on, is complete on all ranks."""

    @property
    def gain(self) -> float:
        """How much longer the whole takes until everything is complete."""
        return self.whole_s / self.streamed_s - 1


def fabric_streams(
    tensors: Tensors, fabric: Fabric, start_up_s: float = 0.0, mixer: Mixer = FREE, names: Sequence[str] = NAMES
) -> list[FabricStream]:
    """Every collective that applies to all hosts of a fabric, fastest stream first.

    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.overlap.tensors import from_layers
    >>> layers = from_layers([1e6] * 6, backward_s=[0] * 6, forward_s=[0] * 6)
    >>> (tree,) = fabric_streams(layers, IdealSwitch(8, bandwidth=1e9).build(), names=["binomial"])
    >>> tree.streamed_s < tree.whole_s, tree.complete_s[0] < tree.complete_s[-1]
    (True, True)
    """
    group, pieces, found = replace(whole_fabric(fabric), own_paths=True), pieces_of(tensors), []
    for name in names:
        if COLLECTIVES.refusal(name, Act.ALL_REDUCE, group) is not None:
            continue
        plain, routes = _made(name, group, fabric)
        if plain.sends * len(pieces) > MOST_SENDS:
            continue
        run = partial(complete_s, routes=routes, size_bytes=tensors.total_bytes, start_up_s=start_up_s, mixer=mixer)
        whole = run(streamed_program(plain, [(0, 1)])).max()
        gaps = sorted({1, reducing_rounds(plain), len(plain.rounds)})
        runs = {gap: run(streamed_program(plain, pieces, gap)) for gap in gaps}
        best = min(gaps, key=lambda gap: (float(runs[gap].max()), float(runs[gap].mean())))
        arrived = tuple(runs[best].max(axis=1).tolist())
        about = COLLECTIVES[name].about
        found.append(FabricStream(name, about, float(whole), best, max(arrived), arrived))
    return sorted(found, key=lambda one: one.streamed_s)


def _made(name: str, group: Group, fabric: Fabric) -> tuple[Program, Routes]:
    """The collective and its paths: its own, or the shortest ones."""
    collective = COLLECTIVES[name]
    if collective.own_paths:
        made = collective.schedule(Act.ALL_REDUCE, group)
        return made.program, made.routes
    program = collective.program(Act.ALL_REDUCE, group)
    return program, shortest(fabric, *lockstep(program, 1.0).all_pairs())


def pieces_of(tensors: Tensors) -> list[Piece]:
    """A few pieces in model order: neighbours that share one count as one tensor, a large tensor has several.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> pieces_of(from_layers([1, 1, 4], backward_s=[0] * 3, forward_s=[0] * 3))
    [(0, 8), (1, 8), (2, 8), (2, 8), (2, 8), (2, 8)]
    """
    parts = cut_evenly(tensors, tensors.total_bytes / PIECES)
    size = np.array([sum(part for _, part in chunk) for chunk in parts])
    width = np.maximum(1, np.rint(FINEST * size / size.max())).astype(int)
    first = [chunk[0][0] for chunk in parts]
    number = np.cumsum([at > 0 and tensor != first[at - 1] for at, tensor in enumerate(first)])
    return list(zip(number.tolist(), width.tolist(), strict=True))


def complete_s(program: Program, routes: Routes, size_bytes: float, start_up_s: float, mixer: Mixer) -> Floats:
    """When each tensor of a fused program is complete on each rank: tensors x ranks, proved and simulated by flows."""
    program.check()
    assert program.fused is not None
    rolled = lockstep(program, size_bytes, start_up_s, mixer=mixer)
    trace = simulate(unroll(rolled), routes)
    ends = trace.end[trace.graph.kind == TaskKind.TRANSFER]
    adds = np.concatenate([step.pattern.reduces for step in program.rounds])
    if not mixer.free:
        # What is added is there when it is added: additions stand in the order of the sends that bring them.
        ends[adds] = trace.end[trace.graph.kind == TaskKind.COMPUTE]
    written = np.zeros((program.chunks, program.ranks))
    first = 0
    for step in program.rounds:
        start, chunk = step.chunks()
        carried, behind = np.diff(start), first + step.pattern.sends
        written[chunk, np.repeat(step.pattern.dst, carried)] = np.repeat(ends[first:behind], carried)
        first = behind
    complete = np.zeros(program.fused.complete_after.shape)
    np.maximum.at(complete, program.fused.tensor, written)
    return complete
