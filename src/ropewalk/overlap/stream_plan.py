"""The planner of the streamed fused all-reduce: what shares a chunk, how finely it is cut, in which order chunks go.

One operation carries all tensors. Small neighbours share a chunk, large tensors are cut, and every chunk has two places
in the queue of the port: one for reducing it and one for broadcasting it. The planner tries orders and sizes, judges
each by a step on the ring, and looks closer around the best. Where there are few tensors it tries all orders and all
cuts. Its answer is never slower than the best published scheme: that is one of the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.choices import Choice, Choices
from ropewalk.overlap.exchange import ALL_AT_ONCE, ChunkExchange, ExchangeRun, Overlaps, Part, chunks_of, run, streamed
from ropewalk.overlap.published import BESIDE, PUBLISHED
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.stream_bounds import StreamBounds, stream_bounds
from ropewalk.overlap.tensors import Tensors

Keys = tuple[Ints, Ints]
"""Urgency of reducing and of broadcasting, by chunk."""

MOST_CHUNKS, MOST_MESSAGES = 512, 40_000
"""Of a stream, and messages that they take a rank; finer cuts are not tried."""
SIZES = tuple(2.0**power for power in range(-3, 5))
"""Chunk sizes that are tried, in multiples of the usual one."""
AROUND, CLOSER = (0.5, 1.0, 2.0, 4.0), (0.6, 0.75, 0.87, 1.15, 1.35, 1.7)
"""The same around the best of them: with finer chunks for what is urgent, then with the best of those."""
WINDOWS = (4, 16, ALL_AT_ONCE)
"""Chunks that are on their way at once: few let an urgent one pass soon, many hide latency."""
BEHIND = 5
"""Chunks by which broadcasts stand behind reductions in one of the orders."""
MOST_CUTS = 3
FEW_RUNS = 4000
"""Orders and cuts up to which all of them are tried."""


class Finer(NamedTuple):
    """The first layers are needed first and their gradients come last: their chunks may be smaller than the others."""

    share: float = 0.0
    """Of all bytes, from the first layer on."""
    factor: float = 1.0
    """Times the size of other chunks."""


ALIKE = Finer()
FINER = tuple(Finer(*one) for one in product((0.02, 0.05, 0.15), (0.125, 0.25, 0.5)))


def _by_need(need: Ints, ready: Ints) -> Keys:
    return need, need


def _just_behind(need: Ints, ready: Ints) -> Keys:
    return 2 * need, 2 * (need + BEHIND) + 1


def _reduce_first(need: Ints, ready: Ints) -> Keys:
    return need, need + len(need)


def _as_produced(need: Ints, ready: Ints) -> Keys:
    return ready, need + len(need)


ORDERS: Choices[Choice[Callable[[Ints, Ints], Keys]]] = Choices(
    "order of chunks",
    (
        Choice("need", _by_need, "each by the layer that needs it"),
        Choice("behind", _just_behind, f"in forward order, broadcasts {BEHIND} chunks behind reductions"),
        Choice("reduce-first", _reduce_first, "reductions before broadcasts, both in forward order"),
        Choice("produced", _as_produced, "reductions as gradients are ready, then broadcasts in forward order"),
    ),
)


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """The best stream found, and what it stands beside."""

    tensors: Tensors
    ring: RankRing
    order: str
    """A name of `ORDERS`, the published scheme whose cuts and order are streamed, or "searched" by trying all."""
    chunk_bytes: float
    """The largest chunk."""
    run: ExchangeRun
    """The stream with all three overlaps."""
    published: dict[str, ExchangeRun]
    bounds: StreamBounds

    @property
    def best_published(self) -> str:
        """The fastest of the published schemes."""
        return min((name for name in self.published if name != BESIDE), key=lambda name: self.published[name].step_s)

    @property
    def best(self) -> ExchangeRun:
        """What to run: the stream, or another scheme where that is as fast."""
        return min(*self.published.values(), self.run, key=lambda one: one.step_s)

    @property
    def streams(self) -> bool:
        """Is the stream faster than everything else?"""
        return self.best is self.run

    @property
    def gain(self) -> float:
        """How much longer the best published scheme takes: 0.1 is 10 %; negative where the stream is slower."""
        return self.published[self.best_published].step_s / self.run.step_s - 1

    @property
    def gain_beside(self) -> float:
        """How much longer priorities take on a library that ran its operations side by side."""
        return self.published[BESIDE].step_s / self.run.step_s - 1

    def combinations(self) -> dict[Overlaps, float]:
        """Seconds of a step of the same chunks in the same order with every combination of overlaps."""
        every = [Overlaps(*used) for used in product((False, True), repeat=3)]
        return {one: self.with_overlaps(one).step_s for one in sorted(every, key=sum)}

    def with_overlaps(self, overlaps: Overlaps, *, keep: bool = False) -> ExchangeRun:
        """The same stream with only these overlaps."""
        return run(self.run.exchange.with_overlaps(overlaps), self.tensors, self.ring, keep=keep)


def plan_stream(tensors: Tensors, ring: RankRing) -> StreamPlan:
    """Search the stream, and run every published scheme beside it.

    >>> from ropewalk.collectives.mixer import Mixer
    >>> from ropewalk.overlap.tensors import from_layers
    >>> layers = from_layers([3e6, 6e6, 3e6], backward_s=[2e-3] * 3, forward_s=[2e-3] * 3)
    >>> plan = plan_stream(layers, RankRing(ranks=4, bandwidth=1e9, mixer=Mixer(5e8), launch_s=1e-3))
    >>> plan.bounds.step_s <= plan.run.step_s < plan.published["fused"].step_s
    True
    """
    published = {name: PUBLISHED[name].make(tensors, ring) for name in PUBLISHED}
    order, found = search_stream(tensors, ring, published)
    largest = float(found.exchange.chunks.chunk_bytes.max())
    return StreamPlan(tensors, ring, order, largest, found, published, stream_bounds(tensors, ring))


def search_stream(tensors: Tensors, ring: RankRing, published: Mapping[str, ExchangeRun]) -> tuple[str, ExchangeRun]:
    """The best stream and the name of its order: cut anew, or with the cuts and the order of a published scheme."""
    cuts = [(size, ALIKE) for size in _sizes(tensors, ring)]
    best = min(_tried(tensors, ring, cuts, tuple(ORDERS), WINDOWS), key=_rank)
    near, orders = [best.size_bytes * times for times in AROUND], sorted({best.order, "behind", "reduce-first"})
    best = min(best, *_tried(tensors, ring, product(near, FINER), orders, {best.window, 16}), key=_rank)
    closer = [(best.size_bytes * times, best.finer) for times in CLOSER]
    best = min(best, *_tried(tensors, ring, closer, (best.order,), (best.window,)), key=_rank)
    others = [(name, run(one.exchange.as_stream(), tensors, ring)) for name, one in published.items()]
    if few_orders(tensors):
        others += (("searched", run(one, tensors, ring)) for one in all_streams(tensors))
    return min((best.order, best.run), *others, key=lambda one: (one[1].step_s, len(one[1].done_s)))


class TriedStream(NamedTuple):
    """One stream of the search."""

    run: ExchangeRun
    size_bytes: float
    finer: Finer
    order: str
    window: int


def _rank(tried: TriedStream) -> tuple[float, int]:
    """Of equals the one with the fewest chunks."""
    return tried.run.step_s, len(tried.run.done_s)


def usual_chunk(tensors: Tensors, ring: RankRing) -> float:
    """The size at which the cost of messages and the wait for the last chunk are balanced: √(n · B · S · o).

    Rounds of one chunk that nothing else hides cost latency too, so that `o` is at least a share of it.
    """
    each = ring.message_s + ring.latency_s / (2 * ring.rounds)
    found = float(np.sqrt(ring.ranks * ring.bandwidth * tensors.total_bytes * each))
    return min(max(found, _smallest(tensors, ring)), tensors.total_bytes)


def cut_evenly(tensors: Tensors, size_bytes: float, finer: Finer = ALIKE) -> list[list[Part]]:
    """Tensors in model order: neighbours share a chunk until it is full, larger ones are cut into equal pieces.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> cut_evenly(from_layers([1, 2, 9], backward_s=[1] * 3, forward_s=[1] * 3), 3)
    [[(0, 1.0), (1, 2.0)], [(2, 3.0)], [(2, 3.0)], [(2, 3.0)]]
    """
    chunks: list[list[Part]] = []
    held: list[Part] = []
    filled = passed = 0.0
    for tensor, size in enumerate(tensors.size_bytes.tolist()):
        most = size_bytes * (finer.factor if passed < finer.share * tensors.total_bytes else 1.0)
        passed += size
        if held and filled + size > most:
            chunks.append(held)
            held, filled = [], 0.0
        if size > most:
            count = int(np.ceil(size / most))
            chunks += [[(tensor, size / count)] for _ in range(count)]
            continue
        held.append((tensor, size))
        filled += size
    return [*chunks, held] if held else chunks


def few_orders(tensors: Tensors) -> bool:
    """Are there so few tensors that all orders and cuts can be tried?"""
    cuts = product(range(1, MOST_CUTS + 1), repeat=len(tensors)) if len(tensors) <= MOST_CUTS else ()
    runs = sum(3 * factorial(sum(cut)) // prod(map(factorial, cut)) for cut in cuts)
    return 0 < runs <= FEW_RUNS


def all_streams(tensors: Tensors) -> Iterator[ChunkExchange]:
    """Every tensor in 1 to `MOST_CUTS` equal pieces, in every order; broadcasts with, behind or after reductions."""
    for cuts in product(range(1, MOST_CUTS + 1), repeat=len(tensors)):
        pieces = [tensor for tensor, count in enumerate(cuts) for _ in range(count)]
        for order in sorted(set(permutations(pieces))):
            parts = [[(tensor, float(tensors.size_bytes[tensor]) / cuts[tensor])] for tensor in order]
            rank = np.arange(len(parts))
            for name in ("need", "behind", "reduce-first"):
                yield streamed(parts, *ORDERS[name].make(rank, rank))


def _sizes(tensors: Tensors, ring: RankRing) -> list[float]:
    usual, total = usual_chunk(tensors, ring), tensors.total_bytes
    return sorted({min(total, max(_smallest(tensors, ring), usual * times)) for times in SIZES})


def _smallest(tensors: Tensors, ring: RankRing) -> float:
    return tensors.total_bytes / min(MOST_CHUNKS, max(1, MOST_MESSAGES // (2 * ring.rounds)))


def _tried(
    tensors: Tensors,
    ring: RankRing,
    cuts: Iterable[tuple[float, Finer]],
    orders: Iterable[str],
    windows: Iterable[int],
) -> Iterator[TriedStream]:
    seen = set()
    for size, finer in cuts:
        parts = cut_evenly(tensors, max(size, _smallest(tensors, ring)), finer)
        if (cut := (len(parts), *map(len, parts))) in seen or len(parts) > 2 * MOST_CHUNKS:
            continue
        seen.add(cut)
        need = np.arange(len(parts))
        ready = np.empty(len(parts), np.int64)
        ready[np.lexsort((-need, chunks_of(parts).ready_s(tensors)))] = need
        for name, window in product(orders, sorted({min(window, len(parts)) for window in windows})):
            exchange = streamed(parts, *ORDERS[name].make(need, ready), window=window)
            yield TriedStream(run(exchange, tensors, ring), size, finer, name, window)
