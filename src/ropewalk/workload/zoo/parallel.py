"""Blocks whose attention and feed-forward layer stand side by side, read the same norm and are summed once.

Wang and Komatsuzaki, GPT-J-6B (2021); Chowdhery et al., PaLM (2022), Table 1; Almazrouei et al., Falcon (2023), with
their published configurations. Tensor ranks sum attention and feed-forward layer together: one all-reduce for a block
in place of two.
"""

from __future__ import annotations

from dataclasses import replace

from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Normalise
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo import llama
from ropewalk.workload.zoo.gpt import causal_loss
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    added,
    calls,
    enter,
    fan_in,
    gelu,
    projected,
    residual,
    stacked,
)
from ropewalk.workload.zoo.shape import Transformer


def _falcon(layers: int, hidden: int, heads: int, kv_heads: int, *, own_norms: bool) -> Transformer:
    return Transformer(
        layers, hidden, heads, 65024, 2048, kv_heads, 4 * hidden, 64, ungated=True, layer_norm=True, own_norms=own_norms
    )


def _palm(layers: int, hidden: int, heads: int) -> Transformer:
    return Transformer(layers, hidden, heads, 256000, 2048, 1, 4 * hidden, 256)


SHAPES = {
    "gpt-j-6b": Transformer(
        28, 4096, 16, 50400, 2048, ffn=16384, tied=False, ungated=True, layer_norm=True, mlp_bias=True, head_bias=True
    ),
    "palm-8b": _palm(32, 4096, 16),
    "palm-62b": _palm(64, 8192, 32),
    "palm-540b": _palm(118, 18432, 48),
    "falcon-7b": _falcon(32, 4544, 71, 1, own_norms=False),
    "falcon-40b": _falcon(60, 8192, 128, 8, own_norms=True),
}  # fmt: skip


def layers(shape: Transformer, run: Run) -> list[Layer]:
    head = (norm(shape, run), *(_biased(shape, one) for one in causal_loss(shape, run)))
    blocks = [("block", block(shape, run))] * shape.layers
    return stacked(run, shape.hidden, llama.embedding(shape, run), blocks, head)


def _biased(shape: Transformer, operator: Operator) -> Operator:
    return replace(operator, bias=shape.head_bias) if isinstance(operator, Linear) else operator


def norm(shape: Transformer, run: Run) -> Operator:
    return Normalise(run.tokens, shape.hidden) if shape.layer_norm else llama.norm(run, shape.hidden)


def block(shape: Transformer, run: Run) -> Operators:
    """Both branches of one input; what they make is summed before tensor ranks meet."""
    elements = run.tokens * shape.hidden
    out, summed = projected(run, shape.queries, shape.hidden, bias=False)
    return (
        norm(shape, run),
        *((norm(shape, run),) if shape.own_norms else ()),
        enter(elements),
        fan_in(elements, 2),
        *llama.heads_attended(shape, run),
        out,
        *feed_forward(shape, run),
        added(elements, role=Role.WHOLE),
        summed,
        residual(elements),
    )


def feed_forward(shape: Transformer, run: Run) -> Operators:
    if not shape.ungated:
        return llama.gated(run, shape.hidden, shape.neurons)
    return (
        Linear(run.tokens, shape.hidden, shape.neurons, bias=shape.mlp_bias, role=Role.COLUMNS),
        gelu(run.tokens * shape.neurons, Role.INSIDE),
        Linear(run.tokens, shape.neurons, shape.hidden, bias=shape.mlp_bias, role=Role.ROWS),
        calls("module"),
    )
