"""Vision transformers, as in torchvision: Dosovitskiy et al., An Image Is Worth 16x16 Words (2020).

Attention goes through torch's own multi-head module, which turns samples and tokens round and keeps queries, keys and
values in one tensor: the copies below are its.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import WorkloadError
from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Normalise, Pointwise
from ropewalk.workload.image import Convolution
from ropewalk.workload.loss import CrossEntropy
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import ADD, COLUMN_SUM, COPY, SPREAD, ZERO
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Launch, Routine, Written
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    attended,
    calls,
    enter,
    gelu,
    interpreted,
    leave,
    projected,
    residual,
    stacked,
)
from ropewalk.workload.zoo.trail import joined
from ropewalk.workload.zoo.transformer import known

CLASS_TOKEN = Routine("class token", (), (COLUMN_SUM,), ("view",), weights=1)
PLACES = Routine("positions", (SPREAD,), (COLUMN_SUM,), ("add",), weights=1)
SELECT = Routine("first token", (), (ZERO, Launch(per_row=True)), ("view",))

THIRD = Launch("permute", share=1 / 3)
QKV = Routine(
    "queries, keys and values",
    forward=(SPREAD, COPY),
    backward=(ZERO, THIRD, ZERO, THIRD, ADD, ZERO, THIRD, ADD, COPY, COLUMN_SUM),
    calls=("add", "view", "copy", "view", "view", "view"),
    weights=1,
)
"""The bias of the joint projection, added apart, and the copy that makes three tensors of one."""


@dataclass(frozen=True)
class Vision:
    """Sizes of a vision transformer."""

    patch: int
    layers: int
    heads: int
    hidden: int
    ffn: int


SHAPES = {
    "vit-b-16": Vision(16, 12, 12, 768, 3072),
    "vit-b-32": Vision(32, 12, 12, 768, 3072),
    "vit-l-16": Vision(16, 24, 16, 1024, 4096),
    "vit-l-32": Vision(32, 24, 16, 1024, 4096),
    "vit-h-14": Vision(14, 32, 16, 1280, 5120),
}


def vit(name: str, batch: int, *, side: int = 224, classes: int = 1000, attention: str = "fused") -> list[Layer]:
    shape = SHAPES[name]
    if side < shape.patch or side % shape.patch:
        raise WorkloadError(
            f"model {name}: images of side {side} do not divide into patches of {shape.patch}: give side= a multiple"
        )
    patches = (side // shape.patch) ** 2
    run = Run(batch, patches + 1, known(name, attention), dropout=False)
    block = ("block", attend(shape, run) + feed_forward(shape, run))
    blocks = [block] * shape.layers
    return stacked(run, shape.hidden, embedding(shape, run, side), blocks, head(shape, run, classes))


def embedding(shape: Vision, run: Run, side: int) -> Operators:
    patch = (shape.patch, shape.patch)
    return (
        Convolution(run.samples, 3, side, side, shape.hidden, patch, patch, bias=True, first=True),
        calls("view", "transpose"),
        Written(CLASS_TOKEN, run.samples, shape.hidden, Role.WHOLE),
        joined(run.tokens * shape.hidden),
        Written(PLACES, run.samples, run.length * shape.hidden, Role.WHOLE),
    )


def attend(shape: Vision, run: Run) -> Operators:
    elements, size = run.tokens * shape.hidden, shape.hidden // shape.heads
    return (
        Normalise(run.tokens, shape.hidden),
        enter(elements),
        turned(elements, forward=True),
        Linear(run.tokens, shape.hidden, 3 * shape.hidden, bias=False, role=Role.COLUMNS),
        Written(QKV, run.tokens, 3 * shape.hidden, Role.INSIDE),
        *attended(run, shape.heads, shape.heads, size, causal=False, dropout=False, masked=False),
        *projected(run, shape.hidden, shape.hidden, bias=True),
        turned(elements, forward=False),
        calls("transpose", "view", "module", "module"),
        interpreted(80, run),
        residual(elements),
    )


def turned(elements: int, *, forward: bool) -> Pointwise:
    """Samples and tokens change places: on the way in forward, on the way out backward."""
    return Pointwise(
        elements, 1, "permute", "permute", 1, int(forward), int(not forward), 0.0, Role.OUTSIDE, "copy"
    )  # fmt: skip


def feed_forward(shape: Vision, run: Run) -> Operators:
    elements = run.tokens * shape.hidden
    return (
        Normalise(run.tokens, shape.hidden),
        enter(elements),
        Linear(run.tokens, shape.hidden, shape.ffn, role=Role.COLUMNS),
        gelu(run.tokens * shape.ffn, Role.INSIDE),
        Linear(run.tokens, shape.ffn, shape.hidden, role=Role.ROWS),
        calls("module"),
        leave(elements),
        residual(elements),
    )


def head(shape: Vision, run: Run, classes: int) -> Operators:
    return (
        Normalise(run.tokens, shape.hidden),
        Written(SELECT, run.samples, run.length * shape.hidden, Role.WHOLE),
        Linear(run.samples, shape.hidden, classes),
        CrossEntropy(run.samples, classes),
    )
