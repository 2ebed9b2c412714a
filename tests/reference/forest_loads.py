"""The proof that a program keeps a forest's promise: bytes on every link, counted send by send, in fractions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from ropewalk.collectives.forest.forest import Forest
from ropewalk.collectives.forest.halves import halves_of
from ropewalk.collectives.forest.layout import layout_of
from ropewalk.collectives.forest.synthesis import AllReduceForest
from ropewalk.collectives.forest.ways import Ways
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import meant
from ropewalk.collectives.program import Program
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import ProofError

SHARE_ROUNDING = 1e-12
"""How far shares in floating point may be from the fractions they stand for."""


def link_loads(program: Program, hosts: list[int], ways: Ways) -> dict[int, Fraction]:
    """Bytes on every link that is used, for each byte of the buffer, counted over all sends of a program."""
    loads: dict[int, Fraction] = {}
    for ends, chunks in _chunks_between(program, hosts).items():
        if ends not in ways:
            raise ProofError(f"{program.name}: no path from host {ends[0]} to host {ends[1]}, which it sends to")
        for links, share in ways[ends]:
            for link in links:
                loads[link] = loads.get(link, Fraction(0)) + share * chunks
    return {link: load / program.buffer_chunks for link, load in sorted(loads.items())}


def prove_loads(
    schedule: Schedule, forest: Forest | AllReduceForest, collective: str, *, relays_as_ranks: bool = False
) -> Fraction:
    """Prove that no link and no host limit needs longer than the promise; the seconds a byte of the busiest one.

    The ways are taken from the forest once more, as fractions, and the routes must be those. With what the busiest link
    carries, it is busy for the result times the size of the buffer, so that its inverse is the largest rate the
    program can have; where relays are ranks it may be better than the forest's.
    """
    halves = halves_of(forest, collective)
    ways = layout_of(halves, relays_as_ranks).ways
    _check_routes(schedule, ways)
    loads = link_loads(schedule.program, schedule.hosts.tolist(), ways)
    fabric = halves.network.fabric
    busy = {
        f"link {fabric.link_name(link)}": load / meant(float(fabric.bandwidth[link])) for link, load in loads.items()
    }
    busy |= _busy_limits(halves.network, loads)
    busiest, seconds = max(busy.items(), key=lambda item: item[1])
    if seconds * forest.algbw > 1:
        raise ProofError(
            f"{schedule.program.name}: {busiest} is busy for {float(seconds * forest.algbw):.9g} times as long as "
            f"{float(forest.algbw):g} bytes/s allow"
        )
    return seconds


def _chunks_between(program: Program, hosts: list[int]) -> dict[tuple[int, int], int]:
    """Chunks that each host sends each other one over the whole program."""
    repeats = np.bincount(program.pattern_of_round, minlength=len(program.patterns))
    total: dict[tuple[int, int], int] = {}
    for pattern, repeat in zip(program.patterns, repeats.tolist(), strict=True):
        key, place = np.unique(pattern.src.astype(np.int64) * program.ranks + pattern.dst, return_inverse=True)
        chunks = np.zeros(len(key), np.int64)
        np.add.at(chunks, place, pattern.chunks)
        for pair, count in zip(key.tolist(), chunks.tolist(), strict=True):
            ends = (hosts[pair // program.ranks], hosts[pair % program.ranks])
            total[ends] = total.get(ends, 0) + count * repeat
    return total


def _check_routes(schedule: Schedule, ways: Ways) -> None:
    """The schedule's routes are these ways, up to the rounding of their shares."""
    routes = schedule.routes
    row = 0
    pairs = list(zip(routes.pair_src.tolist(), routes.pair_dst.tolist(), strict=True))
    if pairs != list(ways):
        raise ProofError(f"{schedule.program.name}: the routes are not those of the forest's pairs of hosts")
    for ends, of_pair in ways.items():
        for links, share in of_pair:
            there = tuple(routes.link[routes.link_start[row] : routes.link_start[row + 1]].tolist())
            if there != links or abs(float(routes.share[row]) - float(share)) > SHARE_ROUNDING:
                raise ProofError(
                    f"{schedule.program.name}: the routes from host {ends[0]} to {ends[1]} are not its ways"
                )
            row += 1


def _busy_limits(network: Network, loads: Mapping[int, Fraction]) -> dict[str, Fraction]:
    """Seconds a byte for which the limit of each host that has one is busy, sending and receiving."""
    fabric = network.fabric
    sent: dict[int, Fraction] = {}
    received: dict[int, Fraction] = {}
    for link, load in loads.items():
        for total, node in ((sent, int(fabric.link_src[link])), (received, int(fabric.link_dst[link]))):
            total[node] = total.get(node, Fraction(0)) + load
    busy = {}
    for tail, head, links, capacity in zip(
        network.tail.tolist(), network.head.tolist(), network.links, network.capacity, strict=True
    ):
        if not links:
            # A limit stands between a host and the vertex that everything leaves, or enters, it through.
            leaves = tail < fabric.nodes
            host = tail if leaves else head
            what = f"{'sending' if leaves else 'receiving'} limit of {fabric.node_names[host]}"
            busy[what] = (sent if leaves else received).get(host, Fraction(0)) / network.bandwidth(capacity)
    return busy
