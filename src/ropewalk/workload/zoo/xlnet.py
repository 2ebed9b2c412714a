"""XLNet with its language-model head, as transformers runs it: attention with relative positions, written out.

Yang et al., XLNet (2019). One stream is run, as in fine-tuning and in the pipeline papers' profiles; the second stream
of permutation training is not. XLNet-36 is the deep variant those papers use: 36 layers of XLNet-large.
"""

from __future__ import annotations

from ropewalk.workload.adapted import Weights
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Normalise, Softmax
from ropewalk.workload.loss import CrossEntropy
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.routines import ADD, COLUMN_SUM, MAP, SPREAD
from ropewalk.workload.table import Embedding
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Launch, Routine, Written
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    copied,
    dropped,
    enter,
    fan_in,
    gathered,
    gelu,
    leave,
    residual,
    sharing,
    stacked,
)  # fmt: skip
from ropewalk.workload.zoo.shape import Transformer

WORDS, LENGTH = 32000, 512

SHAPES = {
    "xlnet-24": Transformer(24, 1024, 16, WORDS, LENGTH),
    "xlnet-36": Transformer(36, 1024, 16, WORDS, LENGTH),
}

WIDE_MAP = Launch(wide=True)
DISTANCES = Routine(
    "table of distances",
    forward=(*(Launch(wide=True, per_row=True),) * 8, *(Launch(wide=True, share=0.5),) * 3, WIDE_MAP),
    backward=(),
    calls=("scale", "cast", "scale", "power", "scale", "scale", "cast", "multiply", "scale", "scale", "cat"),
)
"""Sines and cosines of every distance, once a step."""
DISTANCE_DROPOUT = Routine("dropout of distances", (Launch("dropout", wide=True),), (), ("dropout",))
NARROWED = Routine("distances in the step's precision", (Launch("cast"),), (), ("cast",))
OFFSET = Routine("bias of queries", (SPREAD,), (COLUMN_SUM,), ("add", "view"), weights=1)
SHIFT = Routine(
    "relative shift",
    forward=(Launch(per_row=True), MAP, ADD, MAP, MAP),
    backward=(MAP, Launch(reads=0, share=2), MAP, Launch(reads=0, share=2), Launch(share=2)),
    calls=("view", "scale", "embedding", "add", "scale", "scale"),
)
"""Scores by distance moved to scores by place, added to those by content, scaled."""


def layers(shape: Transformer, run: Run) -> list[Layer]:
    block = ("block", attention(shape, run) + feed_forward(shape, run))
    return stacked(run, shape.hidden, embedding(shape, run), [block] * shape.layers, head(shape, run))


def embedding(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    distances = 2 * run.length
    drop = (Written(DISTANCE_DROPOUT, 2 * run.tokens, shape.hidden, Role.WHOLE),) if run.dropout else ()
    unused = Written(Routine("embedding of the mask", (), (), (), weights=1), 1, shape.hidden, Role.WHOLE)
    return (
        copied(run.tokens, back=False, role=Role.WHOLE),
        Embedding(run.tokens, shape.vocabulary, shape.hidden, Role.COLUMNS, shape.tied),
        leave(elements),
        unused,
        *dropped(run, elements),
        Written(DISTANCES, distances, shape.hidden, Role.WHOLE),
        *drop,
    )


def attention(shape: Transformer, run: Run) -> Operators:
    elements, count = run.tokens * shape.hidden, run.samples * shape.heads
    scores, size = count * run.length**2, shape.head_size
    offset = Written(OFFSET, run.tokens, shape.queries, Role.INSIDE)
    by_distance = Written(SHIFT, count * run.length, run.length, Role.WHOLE)
    kinds = Weights(3 * shape.queries, tensors=2)  # bias and embedding of segments, which one sentence does not use
    query, key = linear(run.tokens, shape), sharing(linear(run.tokens, shape))
    return (
        enter(elements),
        fan_in(elements, 3),
        query, key, key,
        *(gathered(elements, "permute") for _ in range(3)),
        Written(NARROWED, 2 * run.tokens, shape.hidden, Role.WHOLE),
        linear(2 * run.tokens, shape, first=True),
        gathered(2 * elements, "permute"),
        fan_in(elements, 2),
        offset,
        Product(count, run.length, run.length, size),
        offset,
        Product(count, run.length, 2 * run.length, size),
        by_distance,
        kinds,
        Softmax(count * run.length, run.length),
        *dropped(run, scores, Role.INSIDE),
        Product(count, run.length, size, run.length, transposed=False),
        copied(elements), copied(elements),
        Linear(run.tokens, shape.queries, shape.hidden, bias=False, role=Role.ROWS, turned=True),
        leave(elements),
        *dropped(run, elements),
        residual(elements),
        Normalise(run.tokens, shape.hidden),
    )  # fmt: skip


def linear(rows: int, shape: Transformer, *, first: bool = False) -> Operator:
    return Linear(rows, shape.hidden, shape.queries, bias=False, role=Role.COLUMNS, first=first, turned=True)


def feed_forward(shape: Transformer, run: Run) -> Operators:
    elements, neurons = run.tokens * shape.hidden, run.tokens * shape.neurons
    return (
        enter(elements),
        Linear(run.tokens, shape.hidden, shape.neurons, role=Role.COLUMNS),
        gelu(neurons, Role.INSIDE),
        *dropped(run, neurons, Role.INSIDE),
        Linear(run.tokens, shape.neurons, shape.hidden, role=Role.ROWS),
        leave(elements),
        *dropped(run, elements),
        residual(elements),
        Normalise(run.tokens, shape.hidden),
    )


def head(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    return (
        *dropped(run, elements),
        copied(elements, back=False, role=Role.OUTSIDE),
        enter(elements),
        Linear(run.tokens, shape.hidden, shape.vocabulary, role=Role.COLUMNS, tied=shape.tied),
        CrossEntropy(run.tokens, shape.vocabulary, role=Role.INSIDE),
        leave(3 * run.tokens),
    )
