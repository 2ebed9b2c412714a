"""What there is to say about a planned stream: its rows for tables, a sentence, and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ropewalk.overlap.exchange import Overlaps
from ropewalk.overlap.methods import whole
from ropewalk.overlap.published import PUBLISHED
from ropewalk.overlap.stream_plan import ORDERS, StreamPlan

AS_FAST = 5e-4
"""Part of a step that a gain must exceed to be called one."""

MODEL = (
    "each scheme runs with its best setting on a model of one rank of the ring, where slices of operations overlap, so "
    "a step differs a little from the simulated one above"
)
"""Why the same method has two times in one answer."""

WAITS = ("sends and mixes in turn", "broadcasts after everything is reduced", "layers wait for the whole buffer")
"""What a fused all-reduce does without each of its overlaps."""


@dataclass(frozen=True)
class StreamRow:
    """One scheme in a table."""

    name: str
    sort: str
    """published, overlaps, stream, or bound."""
    step_s: float
    operations: int | None
    what: str


def stream_rows(plan: StreamPlan) -> list[StreamRow]:
    """Every scheme, each combination of overlaps, the stream and the bound, fastest first."""
    rows = [
        StreamRow(PUBLISHED[name].label, "published", found.step_s, found.exchange.operations, PUBLISHED[name].about)
        for name, found in plan.published.items()
    ]
    for overlaps, step_s in plan.combinations().items():
        sort = "stream" if all(overlaps) else "overlaps"
        rows.append(
            StreamRow(overlaps_label(overlaps), sort, step_s, 1, _chunks(plan) if all(overlaps) else waits(overlaps))
        )
    rows.append(StreamRow("lower bound", "bound", plan.bounds.step_s, None, plan.bounds.in_words()))
    return sorted(rows, key=lambda row: row.step_s)


def overlaps_label(overlaps: Overlaps) -> str:
    """What tables call a fused all-reduce with these overlaps.

    >>> overlaps_label(Overlaps(True, False, True)), overlaps_label(Overlaps(True, True, True))
    ('fused + mixing + computing', 'streamed (all three)')
    """
    if all(overlaps):
        return "streamed (all three)"
    used = [name for name, on in overlaps._asdict().items() if on]
    return " + ".join(["fused", *used]) if used else "fused, no overlap"


def waits(overlaps: Overlaps) -> str:
    """What is waited for where some overlaps are missing.

    >>> waits(Overlaps(True, False, True))
    'the same chunks: broadcasts after everything is reduced'
    """
    return "the same chunks: " + ", ".join(wait for wait, on in zip(WAITS, overlaps, strict=True) if not on)


def stream_sentence(plan: StreamPlan) -> str:
    """What streaming is worth here, and what forbids more."""
    other = PUBLISHED[plan.best_published].label
    if plan.gain > AS_FAST:
        against = f"{100 * plan.gain:.1f} % faster than {other}, the best published scheme"
    elif plan.gain < -AS_FAST:
        against = f"{-100 * plan.gain:.1f} % slower than {other}: use that"
    else:
        against = f"as fast as {other}: nothing to gain"
    above = plan.run.step_s / plan.bounds.step_s - 1
    return f"streamed, a step is {against}, and {100 * above:.1f} % above the lower bound: {plan.bounds.in_words()}"


def streams_as_json(plan: StreamPlan) -> dict[str, Any]:
    """Steps of all schemes, and the stream chunk by chunk in the order in which chunks are reduced."""
    exchange, names = plan.run.exchange, plan.tensors.names
    chunks = exchange.chunks
    listed = [
        {
            "tensors": [names[tensor] for tensor in chunks.tensor[chunks.chunk == chunk]],
            "size_bytes": chunks.size_bytes[chunks.chunk == chunk].tolist(),
            "reduce": int(exchange.reduce_key[chunk]),
            "broadcast": int(exchange.gather_key[chunk]),
            "complete_s": float(plan.run.done_s[chunk]),
        }
        for chunk in np.argsort(exchange.reduce_key, kind="stable").tolist()
    ]
    return {
        "ranks": plan.ring.ranks,
        "bandwidth_bytes_per_s": plan.ring.bandwidth,
        "mix_bytes_per_s": whole(plan.ring.mixer.rate),
        "step_time_s": plan.run.step_s,
        "lower_bound_s": plan.bounds.step_s,
        "bound": plan.bounds.in_words(),
        "why": stream_sentence(plan),
        "best": "streamed" if plan.streams else min(plan.published, key=lambda name: plan.published[name].step_s),
        "best_published": plan.best_published,
        "gain": plan.gain,
        "gain_over_side_by_side": plan.gain_beside,
        "order": plan.order,
        "window": exchange.window if exchange.window < len(chunks) else None,
        "chunks": listed,
        "complete_s": dict(zip(names, plan.run.arrival_s.tolist(), strict=True)),
        "schemes": {name: found.step_s for name, found in plan.published.items()},
        "overlaps": [{**overlaps._asdict(), "step_time_s": step_s} for overlaps, step_s in plan.combinations().items()],
    }


def _chunks(plan: StreamPlan) -> str:
    order = ORDERS[plan.order].about if plan.order in ORDERS else f"in the order of {plan.order}"
    return f"{len(plan.run.done_s)} chunks, {order}"
