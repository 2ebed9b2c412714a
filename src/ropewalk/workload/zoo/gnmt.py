"""GNMT: Wu et al., Google's Neural Machine Translation System (2016), in the version that MLPerf and PipeDream train.

Encoder: one layer in both directions, then layers in one. Decoder: every layer reads the one before it and the
context that attention finds for the first. Attention is Bahdanau's, normalised, for all words of the target at once.
GNMT-8 has 4 + 4 layers, GNMT-16 8 + 8; width 1024, 36548 words, dropout before every layer, loss with smoothed labels.
"""

from __future__ import annotations

from ropewalk.errors import WorkloadError
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Dropout, Softmax
from ropewalk.workload.lstm import Lstm
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import ADD, CAST, COLUMN_SUM, MAP, ROW_PAIR, SPREAD
from ropewalk.workload.table import Embedding
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Launch, Routine, Written
from ropewalk.workload.zoo.parts import Operators, Run, dropped, fan_in, residual
from ropewalk.workload.zoo.trail import joined

SCORES = Routine(
    "scores of attention",
    forward=(ADD, SPREAD, MAP, Launch("row_mean", 1, 0)),
    backward=(Launch(reads=0), ADD, COLUMN_SUM, Launch("row_mean", 1, 0), Launch("row_mean", 1, 0)),
    calls=("add", "add", "relu", "mean"),
    weights=2, saved=1,
)  # fmt: skip
"""tanh(query + key + bias) · v for every pair of words."""

SMOOTHED_LOSS = Routine(
    "loss with smoothed labels",
    forward=(CAST, Launch("softmax", wide=True), ROW_PAIR, Launch("row_mean", 1, 0, wide=True), ROW_PAIR),
    backward=(ROW_PAIR, Launch(reads=0, wide=True), Launch("softmax_backward", 2, 1, wide=True), CAST),
    calls=("cast", "softmax", "embedding", "mean", "add"),
    saved_wide=1,
)


def gnmt(
    name: str, batch: int, sequence: int, *, layers: int = 16, hidden: int = 1024, vocabulary: int = 36548,
    dropout: bool = True,
) -> list[Layer]:  # fmt: skip
    """Layers as a graph: the encoder's last layer is read by every layer that attends."""
    if layers < 4 or layers % 2:
        raise WorkloadError(
            f"model {name}: {layers} layers are not two equal halves of 2 or more: give layers= an even number from "
            "4 on"
        )
    run = Run(batch, sequence, dropout=dropout)
    depth, elements = layers // 2, run.tokens * hidden
    table = (Embedding(run.tokens, vocabulary, hidden), *dropped(run, elements, Role.WHOLE))
    made = [
        Layer("encoder embedding", table, elements, (), "embedding"),
        Layer("encoder 0", (*recurrent(run, hidden, hidden, 2), joined(2 * elements)), 2 * elements, (0,), "encoder"),
        Layer("encoder 1", deep(run, 2 * hidden, hidden, skips=False), elements, (1,), "encoder"),
    ]
    for number in range(2, depth):
        made.append(Layer(f"encoder {number}", deep(run, hidden, hidden), elements, (len(made) - 1,), "encoder"))
    memory = len(made) - 1
    made.append(Layer("decoder embedding", table, elements, (), "embedding"))
    first = (*recurrent(run, hidden, hidden, 1), *attention(run, hidden))
    made.append(Layer("decoder 0", first, 2 * elements, (memory, len(made) - 1), "attention"))
    context = len(made) - 1
    for number in range(1, depth):
        sources = (context,) if number == 1 else (context, len(made) - 1)
        operators = (joined(2 * elements), *deep(run, 2 * hidden, hidden, skips=number > 1))
        made.append(Layer(f"decoder {number}", operators, elements, sources, "decoder"))
    words = Linear(run.tokens, hidden, vocabulary)
    head = (words, Written(SMOOTHED_LOSS, run.tokens, vocabulary, Role.WHOLE))
    return [*made, Layer("head", head, 1, (len(made) - 1,), "head")]


def recurrent(run: Run, inputs: int, hidden: int, directions: int) -> Operators:
    return (Lstm(run.length, run.samples, inputs, hidden),) * directions


def deep(run: Run, inputs: int, hidden: int, *, skips: bool = True) -> Operators:
    """Dropout, one layer, and from the third layer on a way round it."""
    around = (residual(run.tokens * hidden),) if skips else ()
    return (*dropped(run, run.tokens * inputs, Role.WHOLE), *recurrent(run, inputs, hidden, 1), *around)


def attention(run: Run, hidden: int) -> Operators:
    """Queries from the decoder, keys and values from the encoder."""
    pairs = run.samples * run.length**2
    return (
        fan_in(run.tokens * hidden, 2),
        Linear(run.tokens, hidden, hidden, bias=False),
        Linear(run.tokens, hidden, hidden, bias=False),
        Written(SCORES, pairs, hidden, Role.WHOLE),
        Softmax(run.tokens, run.length, role=Role.WHOLE),
        Product(run.samples, run.length, hidden, run.length, Role.WHOLE, transposed=False),
        *((Dropout(run.tokens * hidden, Role.WHOLE),) if run.dropout else ()),
    )
