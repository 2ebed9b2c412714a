"""Which run NCCL chooses: the shortest by its own arithmetic, which sees a server's own links and not the network.

What it counts with are closed forms: bytes that the busiest GPU sends inside its server, and the NICs of the busiest
server outside, for a byte of the collective. How long the run then takes is for a simulation to say.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ropewalk.collectives.act import Act
from ropewalk.collectives.nccl.runs import Algorithm, Communicator, NcclRun, Protocol, bus_factor, runs_of


class ChosenRun(NamedTuple):
    """A run at a size: what distinguishes the transfers of one collective from those of another on the same group."""

    algorithm: Algorithm
    protocol: Protocol
    part: float
    """Of its bandwidth that it has at the size."""


def chosen(act: Act, group: Communicator, size_bytes: float) -> ChosenRun:
    """The run that NCCL chooses for a collective of this size.

    >>> from ropewalk.collectives.nccl.constants import Generation
    >>> from ropewalk.collectives.nccl.runs import WireRates
    >>> eight = Communicator((8,), Generation.HOPPER, wires=WireRates(367e9, 367e9, 315e9, 376e9))
    >>> [chosen(Act.ALL_REDUCE, eight, size).algorithm.value for size in (1 << 10, 1 << 30)]
    ['ring', 'nvls']
    """
    return _chosen(act, group, float(size_bytes))


@lru_cache(maxsize=1 << 14)
def _chosen(act: Act, group: Communicator, size_bytes: float) -> ChosenRun:
    run = min(
        runs_of(act, group), key=lambda one: one.latency_s + size_bytes * seconds_per_byte(act, group, one, size_bytes)
    )
    return ChosenRun(run.algorithm, run.protocol, run.part_at(size_bytes))


def run_of(act: Act, group: Communicator, what: ChosenRun) -> NcclRun:
    """The run that was chosen."""
    return next(one for one in runs_of(act, group) if (one.algorithm, one.protocol) == what[:2])


def seconds_per_byte(act: Act, group: Communicator, run: NcclRun, size_bytes: float) -> float:
    """What NCCL counts for a byte of a collective of this size."""
    ceiling = bus_factor(act, group.ranks) / run.ceiling
    return max(wire_seconds(act, group, run.algorithm) / run.share, ceiling) / run.part_at(size_bytes)


def wire_seconds(act: Act, group: Communicator, algorithm: Algorithm) -> float:
    """Seconds that the busiest link next to a GPU takes for a byte."""
    inside, across = _sent(act, group, algorithm)
    wires = group.wires
    speed = {Algorithm.NVLS: wires.switches, Algorithm.NVLS_TREE: wires.switches,
             Algorithm.POINT_TO_POINT: wires.exchanges}.get(algorithm, wires.rings)  # fmt: skip
    return max(inside / speed if inside else 0.0, across / wires.nics)


def _sent(act: Act, group: Communicator, algorithm: Algorithm) -> tuple[float, float]:
    """Bytes that a GPU sends inside its server, and all NICs of a server outside, for a byte of the collective."""
    ranks, together = group.ranks, group.widest
    several = len(group.servers) > 1
    factor = bus_factor(act, ranks)
    if algorithm is Algorithm.POINT_TO_POINT:
        if act is Act.SEND:
            return (0.0, float(together)) if several and together == 1 else (1.0, float(several))
        return (together - 1) / ranks, together * (ranks - together) / ranks
    if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        return 1 + 1 / together, _between_trees(len(group.servers))
    if algorithm is Algorithm.TREE:
        return min(2.0, together - 1), _between_trees(len(group.servers))
    # A ring through servers leaves each of them by one GPU: where every GPU has a ring, by all in turn.
    return factor * ((together - 1) / together if several else 1.0), factor * several


def _between_trees(servers: int) -> float:
    """Sends of the busiest server of two trees with half of the buffer each: up and to two below, and up as a leaf."""
    return {1: 0.0, 2: 1.0, 3: 1.5}.get(servers, 2.0)
