"""Orders for PyTorch from exchanges on a ring: streams, and every published scheme on the same library.

What the model of a ring decides as it goes (which unit is handed over next, where few may be under way) is fixed
beforehand here, as the model decided it: real ranks could decide differently, and would wait for each other for ever.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.errors import StrategyError
from ropewalk.execute.overlap.order import CommunicationOrder, OperationLaunch, Piece, Stream
from ropewalk.execute.overlap.orders import ELEMENT_BYTES, elements_of
from ropewalk.overlap.exchange import ChunkExchange, Overlaps, run
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.tensors import Tensors


def order_of_exchange(
    exchange: ChunkExchange, tensors: Tensors, ring: RankRing, *, element_bytes: int = ELEMENT_BYTES
) -> CommunicationOrder:
    """An exchange as ranks run it: its chunks, their urgency, and the overlaps that it allows.

    >>> from ropewalk.overlap.exchange import streamed
    >>> from ropewalk.overlap.tensors import from_layers
    >>> two = from_layers([8, 4], backward_s=[1, 1], forward_s=[1, 1], names=("first", "second"))
    >>> stream = streamed([[(0, 4.0)], [(0, 4.0), (1, 4.0)]], reduce_key=[0, 1], gather_key=[2, 3])
    >>> order = order_of_exchange(stream, two, RankRing(ranks=2, bandwidth=1))
    >>> [launch.pieces for launch in order.launches], order.stream.gather_key
    ([(Piece(tensor='first', start=0, stop=1),),
      (Piece(tensor='first', start=1, stop=2), Piece(tensor='second', start=0, stop=1))], (2, 3))
    """
    units = len(exchange.unit_key)
    any_order = exchange.streams and not exchange.serial and exchange.window >= units
    sent_s = run(exchange, tensors, ring, keep=True).sent_s[:, 0].reshape(len(exchange.chunks), -1)
    turn = range(units) if any_order else _as_handed_over(exchange, sent_s)
    window = None if any_order else 1 if exchange.serial else min(exchange.window, units)
    pieces = _pieces(exchange, tensors, element_bytes)
    of_unit = [np.flatnonzero(exchange.unit == unit).tolist() for unit in turn]
    kept = [[chunk for chunk in chunks if pieces[chunk]] for chunks in of_unit]
    chunks = [chunk for members in kept for chunk in members]
    overlaps = exchange.overlaps
    sequence = np.argsort(sent_s[chunks], axis=None, kind="stable") // sent_s.shape[1]
    stream = Stream(
        overlaps.mixing, overlaps.broadcasting, window,
        tuple(exchange.reduce_key[chunks].tolist()), tuple(exchange.gather_key[chunks].tolist()),
        tuple(sequence.tolist()),
    )  # fmt: skip
    whole = exchange.barrier or (exchange.operations == 1 and not overlaps.computing)
    launches = tuple(OperationLaunch(tuple(pieces[chunk] for chunk in members)) for members in kept if members)
    return CommunicationOrder(launches, barrier=whole, stream=stream)


def in_two_halves(exchange: ChunkExchange) -> ChunkExchange:
    """DeAR's groups as one exchange: reduced in their order, held until all are reduced, then broadcast by need."""
    chunks = len(exchange.chunks)
    behind = chunks * (1 + exchange.unit_key[exchange.unit]) + np.arange(chunks)
    return replace(
        exchange, op=np.zeros_like(exchange.op), gather_key=behind, unit_key=np.arange(len(exchange.unit_key)),
        overlaps=Overlaps(broadcasting=False), serial=False,
    )  # fmt: skip


def _as_handed_over(exchange: ChunkExchange, sent_s: Floats) -> list[int]:
    """Units in the order in which the first message of each leaves."""
    begins = np.full(len(exchange.unit_key), np.inf)
    np.minimum.at(begins, exchange.unit, sent_s[:, 0])
    return [int(unit) for unit in np.lexsort((exchange.unit_key, begins))]


def _pieces(exchange: ChunkExchange, tensors: Tensors, element_bytes: int) -> list[tuple[Piece, ...]]:
    """What is in every chunk, in whole elements: a piece begins where the one before it of its tensor ends."""
    elements = elements_of(tensors, element_bytes)
    chunks = exchange.chunks
    moved, cut = np.zeros(len(tensors)), np.zeros(len(tensors), np.int64)
    found: dict[int, list[Piece]] = defaultdict(list)
    for tensor, chunk, size in zip(chunks.tensor.tolist(), chunks.chunk.tolist(), chunks.size_bytes, strict=True):
        moved[tensor] += size
        start, stop = int(cut[tensor]), round(moved[tensor] / tensors.size_bytes[tensor] * elements[tensor])
        if start < stop:
            found[chunk].append(Piece(tensors.names[tensor], start, stop))
            cut[tensor] = stop
    if short := [name for name, done, all_of in zip(tensors.names, cut, elements, strict=True) if done != all_of]:
        raise StrategyError(f"the exchange does not carry all of {short[0]}: make it for these tensors")
    return [tuple(found[chunk]) for chunk in range(len(chunks))]
