"""The gang that the kernel writes is the one that plain Python writes, move by move."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plain_writer import plain_gang
from tiny_models import FlopPrices, transformer

from ropewalk.strategy import Order, Part, Placement, Strategy
from ropewalk.task.lower import lowering
from ropewalk.timetable import TIMETABLES
from ropewalk.workload.zoo import build

BLOCKS = 8
FUSED = f"llama:layers={BLOCKS - 2},hidden=16,heads=4,ffn=32,vocabulary=24"
SHAPES = ((1, 1), (2, 1), (1, 2), (2, 2))
"""Replicas and tensor ranks of a part."""


@st.composite
def uniform(draw):
    tensor, pipeline = draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 2, 4]))
    schedule = draw(st.sampled_from(tuple(TIMETABLES) if pipeline > 1 else ["1f1b", "gpipe", "zb-h1"]))
    data, context = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2]))
    exchange = draw(st.sampled_from(["gather", "ring"] if context > 1 else ["gather"]))
    recomputes = ["none", "full", "stage", *(["selective"] if exchange == "gather" else [])]
    return Strategy(
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        context_exchange=exchange,
        sequence_parallel=tensor > 1 and draw(st.booleans()),
        zero=draw(st.integers(0, 3)) if data * context > 1 or schedule == "dualpipe" else 0,
        micro_batches=2 * pipeline,
        interleave=2 if schedule == "interleaved" else 1,
        schedule=schedule,
        recompute=draw(st.sampled_from(recomputes)),
        order=Order(draw(st.sampled_from([1000.0, 25e6])), overlap=draw(st.booleans())),
        scatter_gather=draw(st.booleans()),
        prefetch=draw(st.booleans()),
        regather=draw(st.booleans()),
    )


@st.composite
def in_parts(draw):
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=2, max_size=3))
    firsts = [0, 3, 6][: len(shapes)]
    rank, parts = 0, []
    for first, end, (replicas, tensor) in zip(firsts, [*firsts[1:], BLOCKS], shapes, strict=True):
        workers = tuple(range(rank, rank + replicas * tensor))
        parts.append(Part(first, end - 1, workers, tensor=tensor))
        rank += len(workers)
    mirrored = [tensor for _, tensor in shapes] in ([1, 1], [2, 2]) and draw(st.booleans())
    return Strategy(
        pipeline=len(parts),
        parts=tuple(parts),
        micro_batch=4,
        micro_batches=4,
        zero=draw(st.integers(0, 3)) if mirrored else 0,
        schedule="dualpipe" if mirrored else draw(st.sampled_from(["1f1b", "gpipe", "zb-h1"])),
        order=Order(25e6, overlap=draw(st.booleans())),
    )


@given(st.one_of(uniform(), in_parts()), st.sampled_from(["layer", "stage"]), st.booleans())
def test_kernel_writes_the_moves_of_the_plain_writer_in_the_same_order(strategy, detail, tied):
    model = transformer(BLOCKS, words=24 if tied and not strategy.parts else 0)
    if strategy.context_exchange == "ring":
        model = build(FUSED, 1, 8, tied=tied)
    given_to = []

    def seen(*inputs):
        given_to.append(inputs)
        return script_of(*inputs)

    script_of = lowering.script_of
    with patch.object(lowering, "script_of", seen):
        lowering.lower(model, strategy, Placement(strategy), FlopPrices(), detail)
    gang, plain = script_of(*given_to[0]).gang(), plain_gang(*given_to[0])
    after = np.split(gang.dep, gang.dep_start[1:-1])
    columns = (gang.move, gang.stage, gang.peer, after)
    rows = [
        (gang.moves[row], stage, peer, tuple(deps.tolist())) for row, stage, peer, deps in zip(*columns, strict=True)
    ]
    assert rows == plain.rows
