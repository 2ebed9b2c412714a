"""Streams of a model's gradients through other collectives than a ring, simulated on the fabric of its cluster.

The fused buffer is cut into a few pieces in the order of the next forward pass, and they follow each other through the
rounds of a collective. Trees gain most: reductions climb while results come down, which a plain tree does in turn.
Where switches add (SHARP), the same pieces go up and down one tree of switches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.collectives.act import Act
from ropewalk.collectives.fused import Piece, reducing_rounds, streamed_program
from ropewalk.collectives.group import Group, whole_fabric
from ropewalk.collectives.in_network import in_network_all_reduce, switch_tree
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import ProgramError
from ropewalk.fabric import Fabric
from ropewalk.overlap.stream_plan import cut_evenly
from ropewalk.overlap.tensors import Tensors
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import TaskKind, lockstep, unroll

PIECES = 6
"""Pieces of about equal bytes in which the buffer is streamed."""
FINEST = 8
"""Chunks of the largest piece: sizes of pieces are rounded to them."""
IN_NETWORK = "in-network"
NAMES = ("ring", "halving-doubling", "hips", "binomial", "double-tree", "forest", "topoadopt", IN_NETWORK)
"""Collectives that are compared unless some are named."""
SEGMENTS = 16
"""Segments of a buffer that switches add: fewer, and a link waits while the next one is filled."""
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

    def as_json(self) -> dict[str, Any]:
        return {
            "collective": self.collective,
            "whole_s": self.whole_s,
            "streamed_s": self.streamed_s,
            "gain": self.gain,
            "rounds_apart": self.apart,
            "complete_s": list(self.complete_s),
        }


def fabric_streams(
    tensors: Tensors, fabric: Fabric, start_up_s: float = 0.0, mixer: Mixer = FREE, names: Sequence[str] = ()
) -> list[FabricStream]:
    """The named collectives over all hosts of a fabric, fastest stream first; unless named, all that apply.

    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.overlap.tensors import from_layers
    >>> layers = from_layers([1e6] * 6, backward_s=[0] * 6, forward_s=[0] * 6)
    >>> (tree,) = fabric_streams(layers, IdealSwitch(8, bandwidth=1e9).build(), names=["binomial"])
    >>> tree.streamed_s < tree.whole_s, tree.complete_s[0] < tree.complete_s[-1]
    (True, True)
    """
    pieces, found = pieces_of(tensors), []
    for name in dict.fromkeys(names or NAMES):
        if (problem := refusal(name, fabric)) is not None:
            if names:
                raise ProgramError(problem)
            continue
        made = None if _least_sends(name, fabric) * len(pieces) > MOST_SENDS else _made(name, fabric)
        if made is None or made.program.sends * len(pieces) > MOST_SENDS:
            if names:
                raise ProgramError(
                    f"{name} on {fabric.hosts} GPUs is more than {MOST_SENDS:,} sends in {len(pieces)} pieces, too "
                    "many to simulate: leave it out, or give a smaller cluster"
                )
            continue
        adders = FREE if name == IN_NETWORK else mixer
        run = partial(complete_s, size_bytes=tensors.total_bytes, start_up_s=start_up_s, mixer=adders)
        whole = run(_streamed(made, [(0, 1)])).max()
        gaps = sorted({1, reducing_rounds(made.program), len(made.program.rounds)})
        runs = {gap: run(_streamed(made, pieces, gap)) for gap in gaps}
        best = min(gaps, key=lambda gap: (float(runs[gap].max()), float(runs[gap].mean())))
        arrived = tuple(runs[best].max(axis=1).tolist())
        found.append(FabricStream(name, about(name), float(whole), best, max(arrived), arrived))
    return sorted(found, key=lambda one: one.streamed_s)


def about(name: str) -> str:
    """What a collective is, in a sentence."""
    if name == IN_NETWORK:
        return "one tree of switches that add as fast as they forward (SHARP): every host sends and receives once"
    return COLLECTIVES[name].about


def refusal(name: str, fabric: Fabric) -> str | None:
    """Why gradients cannot be streamed through a collective on a fabric, None if they can."""
    if name == IN_NETWORK:
        try:
            switch_tree(fabric, np.arange(fabric.hosts))
        except ProgramError as problem:
            return str(problem)
        return None
    if name not in COLLECTIVES:
        return COLLECTIVES.unknown(name, also=(IN_NETWORK,))
    return COLLECTIVES.refusal(name, Act.ALL_REDUCE, _everyone(fabric))


def _everyone(fabric: Fabric) -> Group:
    return replace(whole_fabric(fabric), own_paths=True)


def _least_sends(name: str, fabric: Fabric) -> int:
    """Sends that a collective certainly has, known before it is made: forests have a tree for each host."""
    forest = name != IN_NETWORK and COLLECTIVES[name].own_paths
    return 2 * fabric.hosts * (fabric.hosts - 1) if forest else 0


def _made(name: str, fabric: Fabric) -> Schedule:
    """The collective with its paths: its own, or the shortest ones."""
    everyone = np.arange(fabric.hosts, dtype=np.int32)
    if name == IN_NETWORK:
        return in_network_all_reduce(fabric, everyone.astype(np.int64), SEGMENTS)
    collective, group = COLLECTIVES[name], _everyone(fabric)
    if collective.own_paths:
        return collective.schedule(Act.ALL_REDUCE, group)
    program = collective.program(Act.ALL_REDUCE, group)
    return Schedule(name, program, everyone, shortest(fabric, *lockstep(program, 1.0).all_pairs()))


def _streamed(made: Schedule, pieces: Sequence[Piece], apart: int | None = None) -> Schedule:
    return replace(made, program=streamed_program(made.program, pieces, apart))


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


def complete_s(made: Schedule, size_bytes: float, start_up_s: float, mixer: Mixer) -> Floats:
    """When each tensor of a fused program is complete on each rank: tensors x ranks, proved and simulated by flows."""
    program = made.program
    program.check()
    assert program.fused is not None
    rolled = lockstep(program, size_bytes, start_up_s, made.hosts, mixer)
    trace = simulate(unroll(rolled), made.routes)
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
