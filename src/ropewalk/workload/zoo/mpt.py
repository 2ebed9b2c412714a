"""MPT as llm-foundry trains it: GPT with a fused GELU, fused attention, no dropout and learnt positions.

Sizes are those of llm-foundry's pretraining configurations, which change some of GPT-3's numbers of heads so that a
head has 128 numbers.
"""

from __future__ import annotations

from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Normalise
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import SUM_OVER_BATCH
from ropewalk.workload.table import Embedding
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Written
from ropewalk.workload.zoo.gpt import causal_loss
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    added,
    attended,
    calls,
    enter,
    gathered,
    gelu,
    hidden_layer,
    leave,
    projected,
    rejoined,
    stacked,
)  # fmt: skip
from ropewalk.workload.zoo.shape import Transformer

WORDS, LENGTH = 50368, 2048

SHAPES = {
    "mpt-125m": Transformer(12, 768, 12, WORDS, LENGTH),
    "mpt-350m": Transformer(24, 1024, 16, WORDS, LENGTH),
    "mpt-760m": Transformer(24, 1536, 12, WORDS, LENGTH),
    "mpt-1b": Transformer(24, 2048, 16, WORDS, LENGTH),
    "mpt-3b": Transformer(32, 2560, 20, WORDS, LENGTH),
    "mpt-7b": Transformer(32, 4096, 32, WORDS, LENGTH),
    "mpt-13b": Transformer(40, 5120, 40, WORDS, LENGTH),
    "mpt-30b": Transformer(48, 7168, 56, WORDS, LENGTH),
    "mpt-70b": Transformer(80, 8192, 64, WORDS, LENGTH),
}


def layers(shape: Transformer, run: Run) -> list[Layer]:
    block = ("block", attention(shape, run) + feed_forward(shape, run))
    return stacked(
        run,
        shape.hidden,
        embedding(shape, run),
        [block] * shape.layers,
        (Normalise(run.tokens, shape.hidden), *causal_loss(shape, run)),
    )


def embedding(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    return (
        Embedding(run.tokens, shape.vocabulary, shape.hidden, Role.COLUMNS, shape.tied),
        leave(elements),
        Embedding(run.length, shape.places, shape.hidden),
        added(elements, spread=True),
        Written(SUM_OVER_BATCH, run.samples, run.length * shape.hidden, Role.WHOLE),
    )


def attention(shape: Transformer, run: Run) -> Operators:
    elements, wide = run.tokens * shape.hidden, shape.queries + 2 * shape.keys
    return (
        Normalise(run.tokens, shape.hidden),
        enter(elements),
        Linear(run.tokens, shape.hidden, wide, role=Role.COLUMNS),
        calls("view", "view", "transpose", "module", "module"),
        gathered(run.tokens * wide, "cat"),
        *attended(run, shape.heads, shape.shared_heads, shape.head_size, causal=True, dropout=False),
        *projected(run, shape.queries, shape.hidden, bias=not run.stack.merged),
        *rejoined(run, shape.hidden),
    )


def feed_forward(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    return (
        Normalise(run.tokens, shape.hidden),
        enter(elements),
        *hidden_layer(run, shape.hidden, shape.neurons, gelu(run.tokens * shape.neurons, Role.INSIDE)),
        Linear(run.tokens, shape.neurons, shape.hidden, not run.stack.merged, role=Role.ROWS),
        calls("module"),
        leave(elements),
        *rejoined(run, shape.hidden),
    )
