"""Llama and its kin, as transformers runs them: root mean square norms, rotated keys, gated feed-forward layers.

Touvron et al., LLaMA (2023) and Llama 2 (2023); Grattafiori et al., The Llama 3 Herd of Models (2024). Others build the
same block with windows, norms and biases of their own (`like_llama.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Normalise
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import (
    GATE,
    GATE_AT_ONCE,
    POSITIONS,
    RMS_NORM,
    RMS_NORM_AT_ONCE,
    ROTATE,
    ROTATE_AT_ONCE,
    ROTATION_TABLE,
    SINKS,
    SQUARED_RELU,
    SQUARED_RELU_AT_ONCE,
)
from ropewalk.workload.table import Embedding
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Written
from ropewalk.workload.zoo import core_code
from ropewalk.workload.zoo.gpt import causal_loss
from ropewalk.workload.zoo.graphs import ATTENTION, FEED_FORWARD
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    attended,
    calls,
    captured,
    enter,
    fan_in,
    gathered,
    interpreted,
    leave,
    projected,
    residual,
    sharing,
    stacked,
)  # fmt: skip
from ropewalk.workload.zoo.shape import Transformer

WORDS, MORE_WORDS = 32000, 128256


def _shape(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, words: int, length: int) -> Transformer:
    return Transformer(layers, hidden, heads, words, length, kv_heads, ffn, tied=False)


SHAPES = {
    "llama-7b": _shape(32, 4096, 32, 32, 11008, WORDS, 2048),
    "llama-13b": _shape(40, 5120, 40, 40, 13824, WORDS, 2048),
    "llama-30b": _shape(60, 6656, 52, 52, 17920, WORDS, 2048),
    "llama-65b": _shape(80, 8192, 64, 64, 22016, WORDS, 2048),
    "llama2-7b": _shape(32, 4096, 32, 32, 11008, WORDS, 4096),
    "llama2-13b": _shape(40, 5120, 40, 40, 13824, WORDS, 4096),
    "llama2-70b": _shape(80, 8192, 64, 8, 28672, WORDS, 4096),
    "llama3-8b": _shape(32, 4096, 32, 8, 14336, MORE_WORDS, 8192),
    "llama3-70b": _shape(80, 8192, 64, 8, 28672, MORE_WORDS, 8192),
    "llama3-405b": _shape(126, 16384, 128, 8, 53248, MORE_WORDS, 8192),
    "llama-3.2-1b": Transformer(16, 2048, 32, MORE_WORDS, 8192, 8, 8192),
    "llama-3.2-3b": Transformer(28, 3072, 24, MORE_WORDS, 8192, 8, 8192),
}


def layers(shape: Transformer, run: Run) -> list[Layer]:
    blocks = by_window(shape, "block", lambda window: attention(shape, run, window) + feed_forward(shape, run))
    return between_words(shape, run, blocks)


def by_window(shape: Transformer, kind: str, make: Callable[[int], Operators]) -> list[tuple[str, Operators]]:
    """A block for every layer, with the window that it has; those with one are of a kind of their own."""
    windows = [shape.window_at(layer) for layer in range(shape.layers)]
    made = {window: (f"windowed {kind}" if window else kind, make(window)) for window in set(windows)}
    return [made[window] for window in windows]


def between_words(shape: Transformer, run: Run, blocks: Sequence[tuple[str, Operators]]) -> list[Layer]:
    """Blocks between the table of words and the loss of the next word."""
    head = (norm(run, shape.hidden), *causal_loss(shape, run))
    return stacked(run, shape.hidden, embedding(shape, run), blocks, head)


def embedding(shape: Transformer, run: Run, rotated: int = 0) -> Operators:
    """Words, and the table of rotations for heads of `rotated` numbers, whole heads unless told otherwise."""
    return (
        Embedding(run.tokens, shape.vocabulary, shape.hidden, Role.COLUMNS, shape.tied),
        leave(run.tokens * shape.hidden),
        Written(POSITIONS, run.tokens, 1, Role.WHOLE),
        Written(ROTATION_TABLE, run.length, rotated or shape.head_size, Role.WHOLE),
    )


def norm(run: Run, width: int, role: Role = Role.OUTSIDE, rows: int = 0) -> Normalise | Written:
    """A norm of every token, or of every one of `rows` rows."""
    if run.stack.fused and not run.stack.merged:
        return Normalise(rows or run.tokens, width, "rms_norm", role)
    return Written(RMS_NORM_AT_ONCE if run.stack.merged else RMS_NORM, rows or run.tokens, width, role)


def attention(shape: Transformer, run: Run, window: int = 0, *, rotated: bool = True) -> Operators:
    elements = run.tokens * shape.hidden
    made = (
        norm(run, shape.hidden),
        enter(elements),
        *heads_attended(shape, run, window, rotated=rotated),
        *projected(run, shape.queries, shape.hidden, bias=shape.out_bias),
        *behind(shape, run),
        residual(elements),
    )
    return captured(run, ATTENTION, made)


def heads_attended(shape: Transformer, run: Run, window: int = 0, *, rotated: bool = True) -> Operators:
    """From tokens to what all heads make of them."""
    rotate = ROTATE_AT_ONCE if run.stack.fused else ROTATE
    turns = (Written(rotate, run.tokens, width, Role.INSIDE) for width in (shape.queries, shape.keys))
    return (
        *_queries_and_keys(shape, run),
        calls("view", "view", "transpose", "transpose", "view", "module", "module"),
        interpreted(400, run, core_code.ATTENTION),
        *_heads_normalised(shape, run),
        *(turns if rotated else ()),
        *((Written(SINKS, run.tokens, shape.heads, Role.INSIDE),) if shape.sinks else ()),
        *attended(run, shape.heads, shape.shared_heads, shape.head_size, causal=True, dropout=False, window=window),
    )


def behind(shape: Transformer, run: Run) -> Operators:
    """The norm behind a sub-layer, where there is one."""
    return (norm(run, shape.hidden),) if shape.norms_behind else ()


def _heads_normalised(shape: Transformer, run: Run) -> Operators:
    """Queries and keys head by head, where they are normalised."""
    if not shape.qk_norm:
        return ()
    rows = run.tokens * shape.heads, run.tokens * shape.shared_heads
    return tuple(norm(run, shape.head_size, Role.HEADS, each) for each in rows)


def _queries_and_keys(shape: Transformer, run: Run) -> Operators:
    """Queries, keys and values, by one product or by three that read the same input."""
    if run.stack.merged:
        wide = shape.queries + 2 * shape.keys
        return (
            Linear(run.tokens, shape.hidden, wide, bias=shape.qkv_bias, role=Role.COLUMNS),
            gathered(run.tokens * wide, "cat"),
        )
    queries = Linear(run.tokens, shape.hidden, shape.queries, bias=shape.qkv_bias, role=Role.COLUMNS)
    keys = sharing(Linear(run.tokens, shape.hidden, shape.keys, bias=shape.qkv_bias, role=Role.COLUMNS))
    return fan_in(run.tokens * shape.hidden, 3), queries, keys, keys


def feed_forward(shape: Transformer, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    made = (
        norm(run, shape.hidden), enter(elements), *gated(run, shape.hidden, shape.neurons), leave(elements),
        *behind(shape, run), residual(elements),
    )  # fmt: skip
    return captured(run, FEED_FORWARD, made)


def gated(run: Run, hidden: int, neurons: int) -> Operators:
    """down(silu(gate(x)) up(x))."""
    up = Linear(run.tokens, hidden, neurons, bias=False, role=Role.COLUMNS)
    both = (
        (replace(up, outputs=2 * neurons),) if run.stack.merged else (fan_in(run.tokens * hidden, 2), up, sharing(up))
    )
    return (
        *both,
        Written(GATE_AT_ONCE if run.stack.fused else GATE, run.tokens, neurons, Role.INSIDE),
        Linear(run.tokens, neurons, hidden, bias=False, role=Role.ROWS),
        calls("module"),
    )


def squared(run: Run, hidden: int, neurons: int) -> Operators:
    """down(relu(up(x))²)."""
    bend = SQUARED_RELU_AT_ONCE if run.stack.fused else SQUARED_RELU
    return (
        Linear(run.tokens, hidden, neurons, bias=False, role=Role.COLUMNS),
        Written(bend, run.tokens, neurons, Role.INSIDE),
        Linear(run.tokens, neurons, hidden, bias=False, role=Role.ROWS),
        calls("module"),
    )
