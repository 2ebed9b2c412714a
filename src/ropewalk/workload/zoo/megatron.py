"""GPTs as Megatron-LM trained them in 2021: fused bias-GELU and bias-dropout-add, scores of attention in memory.

Under the stack `megatron` they run as in Megatron-Core: attention and loss are fused too.

Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM (2021), Table 1;
Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models (2022), Table 3.
"""

from __future__ import annotations

from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Normalise
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import BIAS_ADD, BIAS_DROPOUT_ADD, BIAS_GELU, SUM_OVER_BATCH, VOCABULARY_LOSS
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
    dropped,
    enter,
    gathered,
    leave,
    projected,
    stacked,
)  # fmt: skip
from ropewalk.workload.zoo.shape import Transformer

WORDS, LENGTH = 51200, 2048

SHAPES = {
    "megatron-22b": Transformer(48, 6144, 64, WORDS, LENGTH),
    "megatron-175b": Transformer(96, 12288, 96, WORDS, LENGTH),
    "megatron-530b": Transformer(105, 20480, 128, WORDS, LENGTH),
    "megatron-1t": Transformer(128, 25600, 160, WORDS, LENGTH),
}


def layers(shape: Transformer, run: Run) -> list[Layer]:
    block = ("block", attention(shape, run) + feed_forward(shape, run))
    return stacked(run, shape.hidden, embedding(shape, run), [block] * shape.layers, head(shape, run))


def embedding(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    return (
        Embedding(run.tokens, shape.vocabulary, shape.hidden, Role.COLUMNS, shape.tied),
        leave(elements),
        Embedding(run.length, shape.places, shape.hidden),
        added(elements, spread=True),
        Written(SUM_OVER_BATCH, run.samples, run.length * shape.hidden, Role.WHOLE),
        *dropped(run, elements),
    )


def attention(shape: Transformer, run: Run) -> Operators:
    wide = shape.queries + 2 * shape.keys
    return (
        Normalise(run.tokens, shape.hidden),
        enter(run.tokens * shape.hidden),
        Linear(run.tokens, shape.hidden, wide, role=Role.COLUMNS),
        calls("view", "view", "transpose", "transpose", "module", "module"),
        gathered(run.tokens * wide, "cat"),
        *attended(run, shape.heads, shape.shared_heads, shape.head_size, causal=True, dropout=True),
        *projected(run, shape.queries, shape.hidden, bias=False),
        rejoin(shape, run),
    )


def feed_forward(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    return (
        Normalise(run.tokens, shape.hidden),
        enter(elements),
        Linear(run.tokens, shape.hidden, shape.neurons, bias=False, role=Role.COLUMNS),
        Written(BIAS_GELU, run.tokens, shape.neurons, Role.INSIDE),
        Linear(run.tokens, shape.neurons, shape.hidden, bias=False, role=Role.ROWS),
        calls("module", "module"),
        leave(elements),
        rejoin(shape, run),
    )


def rejoin(shape: Transformer, run: Run) -> Written:
    """Bias, dropout and the sum with the residual, in one kernel."""
    return Written(BIAS_DROPOUT_ADD if run.dropout else BIAS_ADD, run.tokens, shape.hidden)


def head(shape: Transformer, run: Run) -> Operators:
    if run.stack.fused:
        return (Normalise(run.tokens, shape.hidden), *causal_loss(shape, run))
    return (
        Normalise(run.tokens, shape.hidden),
        enter(run.tokens * shape.hidden),
        Linear(run.tokens, shape.hidden, shape.vocabulary, bias=False, role=Role.COLUMNS, tied=shape.tied, exact=True),
        Written(VOCABULARY_LOSS, run.tokens, shape.vocabulary, Role.INSIDE),
        leave(3 * run.tokens),
    )
