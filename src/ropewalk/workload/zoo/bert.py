"""BERT with its masked-language head: layer norms after each sub-layer.

Devlin et al., BERT (2018). BERT-48 is the deep variant that the pipeline papers use: BERT-large with 48 layers.
"""

from __future__ import annotations

from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Normalise
from ropewalk.workload.loss import CrossEntropy
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import SUM_OVER_BATCH
from ropewalk.workload.table import Embedding
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Launch, Routine, Written
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    added,
    attended,
    calls,
    dropped,
    enter,
    fan_in,
    gathered,
    gelu,
    hidden_layer,
    interpreted,
    leave,
    projected,
    rejoined,
    sharing,
    stacked,
)  # fmt: skip
from ropewalk.workload.zoo.shape import Transformer

WORDS, LENGTH = 30522, 512
TYPES = 2
"""Sentences of a pair: the first and the second."""
TYPE_NUMBERS = Routine("types of tokens", (Launch(wide=True, per_row=True),), (), ("embedding",))

SHAPES = {
    "bert-base": Transformer(12, 768, 12, WORDS, LENGTH),
    "bert-large": Transformer(24, 1024, 16, WORDS, LENGTH),
    "bert-48": Transformer(48, 1024, 16, WORDS, LENGTH),
}


def layers(shape: Transformer, run: Run) -> list[Layer]:
    block = ("block", attention(shape, run) + feed_forward(shape, run))
    return stacked(run, shape.hidden, embedding(shape, run), [block] * shape.layers, head(shape, run))


def embedding(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    return (
        Embedding(run.tokens, shape.vocabulary, shape.hidden, Role.COLUMNS, shape.tied),
        leave(elements),
        Written(TYPE_NUMBERS, run.length, 1, Role.WHOLE),
        Embedding(run.tokens, TYPES, shape.hidden),
        added(elements),
        Embedding(run.length, shape.places, shape.hidden),
        added(elements, spread=True),
        Written(SUM_OVER_BATCH, run.samples, run.length * shape.hidden, Role.WHOLE),
        Normalise(run.tokens, shape.hidden),
        *dropped(run, elements),
    )


def attention(shape: Transformer, run: Run) -> Operators:
    return (
        enter(run.tokens * shape.hidden),
        *_queries_and_keys(shape, run),
        calls("view", "view", "transpose", "transpose", "module", "module", "module", "module"),
        interpreted(130, run),
        *attended(run, shape.heads, shape.shared_heads, shape.head_size, causal=False, dropout=True),
        *projected(run, shape.queries, shape.hidden, bias=not run.stack.merged),
        *rejoined(run, shape.hidden),
        Normalise(run.tokens, shape.hidden),
    )


def _queries_and_keys(shape: Transformer, run: Run) -> Operators:
    """Queries, keys and values, by one product or by three that read the same input."""
    wide = shape.queries + 2 * shape.keys
    if run.stack.merged:
        return Linear(run.tokens, shape.hidden, wide, role=Role.COLUMNS), gathered(run.tokens * wide, "cat")
    queries = Linear(run.tokens, shape.hidden, shape.queries, role=Role.COLUMNS)
    keys = sharing(Linear(run.tokens, shape.hidden, shape.keys, role=Role.COLUMNS))
    return fan_in(run.tokens * shape.hidden, 3), queries, keys, keys


def feed_forward(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    return (
        enter(elements),
        *hidden_layer(run, shape.hidden, shape.neurons, gelu(run.tokens * shape.neurons, Role.INSIDE)),
        Linear(run.tokens, shape.neurons, shape.hidden, not run.stack.merged, role=Role.ROWS),
        calls("module", "module"),
        leave(elements),
        *rejoined(run, shape.hidden),
        Normalise(run.tokens, shape.hidden),
    )


def head(shape: Transformer, run: Run) -> Operators:
    """One more layer of the model's width, then the words; the loss stays in the step's precision."""
    return (
        Linear(run.tokens, shape.hidden, shape.hidden, role=Role.OUTSIDE),
        gelu(run.tokens * shape.hidden, Role.OUTSIDE),
        Normalise(run.tokens, shape.hidden),
        enter(run.tokens * shape.hidden),
        Linear(
            run.tokens,
            shape.hidden,
            shape.vocabulary,
            role=Role.COLUMNS,
            tied=shape.tied,
            padded_outputs=run.stack.pads_products,
        ),
        CrossEntropy(run.tokens, shape.vocabulary, role=Role.INSIDE),
        leave(3 * run.tokens),
    )
