"""GPT-2 and its kin: learnt positions, layer norms before sub-layers, a GELU that transformers writes out.

Radford et al., Language Models are Unsupervised Multitask Learners (2019); sizes of GPT-3 from Brown et al. (2020),
Table 2.1, whose attention is dense here in every layer. The table prints 24 heads of 128 for the model of width 2048
and a width of 5140 for the 13B model; neither fits its other columns, so 16 heads and 5120 are used.
"""

from __future__ import annotations

from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Normalise
from ropewalk.workload.loss import CrossEntropy
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import GELU, POSITIONS, SOFTCAP, SOFTCAP_AT_ONCE, SUM_OVER_BATCH
from ropewalk.workload.table import Embedding
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Written
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    added,
    attended,
    calls,
    dropped,
    enter,
    gathered,
    gelu,
    hidden_layer,
    interpreted,
    leave,
    projected,
    rejoined,
    stacked,
)  # fmt: skip
from ropewalk.workload.zoo.shape import Transformer

WORDS, LENGTH = 50257, 1024

SHAPES = {
    "gpt2": Transformer(12, 768, 12, WORDS, LENGTH),
    "gpt2-medium": Transformer(24, 1024, 16, WORDS, LENGTH),
    "gpt2-large": Transformer(36, 1280, 20, WORDS, LENGTH),
    "gpt2-xl": Transformer(48, 1600, 25, WORDS, LENGTH),
    "gpt3-125m": Transformer(12, 768, 12, WORDS, 2048),
    "gpt3-350m": Transformer(24, 1024, 16, WORDS, 2048),
    "gpt3-760m": Transformer(24, 1536, 16, WORDS, 2048),
    "gpt3-1.3b": Transformer(24, 2048, 16, WORDS, 2048),
    "gpt3-2.7b": Transformer(32, 2560, 32, WORDS, 2048),
    "gpt3-6.7b": Transformer(32, 4096, 32, WORDS, 2048),
    "gpt3-13b": Transformer(40, 5120, 40, WORDS, 2048),
    "gpt3-175b": Transformer(96, 12288, 96, WORDS, 2048),
}


def layers(shape: Transformer, run: Run) -> list[Layer]:
    block = ("block", attention(shape, run) + feed_forward(shape, run))
    return stacked(run, shape.hidden, embedding(shape, run), [block] * shape.layers, head(shape, run))


def embedding(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    return (
        Embedding(run.tokens, shape.vocabulary, shape.hidden, Role.COLUMNS, shape.tied),
        leave(elements),
        Written(POSITIONS, run.tokens, 1, Role.WHOLE),
        Embedding(run.length, shape.places, shape.hidden),
        added(elements, spread=True),
        Written(SUM_OVER_BATCH, run.samples, run.length * shape.hidden, Role.WHOLE),
        *dropped(run, elements),
    )


def attention(shape: Transformer, run: Run) -> Operators:
    elements, heads, merged = run.tokens * shape.hidden, shape.head_size, run.stack.merged
    return (
        Normalise(run.tokens, shape.hidden),
        enter(elements),
        Linear(run.tokens, shape.hidden, shape.queries + 2 * shape.keys, role=Role.COLUMNS, turned=not merged),
        calls("view", "view", "transpose", "transpose", "view", "module", "module"),
        interpreted(150, run),
        gathered(run.tokens * (shape.queries + 2 * shape.keys), "cat"),
        *attended(run, shape.heads, shape.shared_heads, heads, causal=True, dropout=True),
        *projected(run, shape.queries, shape.hidden, bias=not merged, turned=not merged),
        *rejoined(run, shape.hidden),
    )


def feed_forward(shape: Transformer, run: Run) -> Operators:
    elements, neurons, merged = run.tokens * shape.hidden, run.tokens * shape.neurons, run.stack.merged
    at_once, written = gelu(neurons, Role.INSIDE), Written(GELU, run.tokens, shape.neurons, Role.INSIDE)
    activation = at_once if run.stack.fused else written
    return (
        Normalise(run.tokens, shape.hidden),
        enter(elements),
        *hidden_layer(run, shape.hidden, shape.neurons, activation, turned=not merged),
        Linear(run.tokens, shape.neurons, shape.hidden, not merged, role=Role.ROWS, turned=not merged),
        calls("view", "view", "module", "module"),
        leave(elements),
        *rejoined(run, shape.hidden),
    )


def head(shape: Transformer, run: Run) -> Operators:
    return (Normalise(run.tokens, shape.hidden), *causal_loss(shape, run))


def causal_loss(shape: Transformer, run: Run) -> Operators:
    """Logits, made float32, against the next word. A split vocabulary meets in three numbers a token."""
    return (
        enter(run.tokens * shape.hidden),
        Linear(
            run.tokens,
            shape.hidden,
            shape.vocabulary,
            bias=False,
            role=Role.COLUMNS,
            tied=shape.tied,
            exact=True,
            padded_outputs=run.stack.pads_products,
        ),
        *(
            (Written(SOFTCAP_AT_ONCE if run.stack.fused else SOFTCAP, run.tokens, shape.vocabulary, Role.INSIDE),)
            if shape.softcap
            else ()
        ),
        _loss(shape, run),
        leave(3 * run.tokens),
    )


def _loss(shape: Transformer, run: Run) -> CrossEntropy:
    """Fused where the stack does so, otherwise on logits in float32: by PyTorch, or in the steps of Megatron-LM."""
    stack = run.stack
    stepwise = stack.plain_loss and stack.transformer_engine
    widened = not stack.fused or (stack.plain_loss and not stepwise)
    return CrossEntropy(
        run.tokens, shape.vocabulary, widened=widened, shifted=True, stepwise=stepwise, role=Role.INSIDE
    )
