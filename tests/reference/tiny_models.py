"""Transformers small enough to count by hand, prices that follow from arithmetic alone, and a clock for steps."""

from dataclasses import dataclass, field

import numpy as np

from ropewalk.task.step import Act, Step
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Dropout, Normalise, Pointwise, Softmax
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.experts import Experts
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.table import Embedding
from ropewalk.workload.workload import Layer, Workload, chain


def attention(batch: int, sequence: int, hidden: int, heads: int) -> tuple[Operator, ...]:
    tokens = batch * sequence
    count, size = batch * heads, hidden // heads
    return (
        Normalise(tokens, hidden),
        Exchange(Meeting.ENTER, tokens * hidden),
        Linear(tokens, hidden, 3 * hidden, role=Role.COLUMNS),
        Product(count, sequence, sequence, size),
        Softmax(count * sequence, sequence),
        Dropout(count * sequence * sequence, Role.INSIDE),
        Product(count, sequence, size, sequence, transposed=False),
        Linear(tokens, hidden, hidden, role=Role.ROWS),
        Exchange(Meeting.LEAVE, tokens * hidden),
        Dropout(tokens * hidden),
    )


def feed_forward(batch: int, sequence: int, hidden: int) -> tuple[Operator, ...]:
    tokens = batch * sequence
    return (
        Normalise(tokens, hidden),
        Exchange(Meeting.ENTER, tokens * hidden),
        Linear(tokens, hidden, 4 * hidden, role=Role.COLUMNS),
        Pointwise(4 * tokens * hidden, role=Role.INSIDE),
        Linear(tokens, 4 * hidden, hidden, role=Role.ROWS),
        Exchange(Meeting.LEAVE, tokens * hidden),
        Dropout(tokens * hidden),
    )


def experts(batch: int, sequence: int, hidden: int, count: int) -> tuple[Operator, ...]:
    tokens = batch * sequence
    return (
        Linear(tokens, hidden, count, bias=False),
        Exchange(Meeting.DISPATCH, 2 * tokens * hidden),
        Experts(2 * tokens, count, hidden, 2 * hidden),
        Exchange(Meeting.COMBINE, 2 * tokens * hidden),
    )


def transformer(
    blocks: int = 4, batch: int = 1, sequence: int = 8, hidden: int = 16, heads: int = 4, *, words: int = 0,
    mixture: int = 0,
) -> Workload:  # fmt: skip
    """Blocks alone, or between an embedding and a head that share `words` rows; `mixture` experts in each block."""
    elements = batch * sequence * hidden
    tail = experts(batch, sequence, hidden, mixture) if mixture else feed_forward(batch, sequence, hidden)
    operators = attention(batch, sequence, hidden, heads) + tail
    layers = [Layer(f"block {number}", operators, elements) for number in range(blocks)]
    if words:
        table = Embedding(batch * sequence, words, hidden, Role.COLUMNS), Exchange(Meeting.LEAVE, elements)
        loss = (
            Exchange(Meeting.ENTER, elements),
            Linear(batch * sequence, hidden, words, bias=False, role=Role.COLUMNS, tied=True),
        )
        layers = [Layer("embedding", table, elements), *layers, Layer("head", loss, 1)]
    return chain(
        "tiny", layers, batch=batch, sequence=sequence,
        resize=lambda size: transformer(
            blocks, size, sequence, hidden, heads, words=words, mixture=mixture
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Half:
    element_bytes: float = 2.0


@dataclass
class FlopPrices:
    """A second for each operation of arithmetic; the backward pass takes what its kernels say."""

    precision: Half = field(default_factory=Half)
    asked: int = 0

    def forward(self, operators):
        self.asked += 1
        return sum(kernel.flops for op in operators for kernel in op.forward())

    def backward(self, operators):
        self.asked += 1
        return sum(kernel.flops for op in operators for kernel in op.backward())

    def weight(self, operators):
        return sum(kernel.flops for op in operators for kernel in op.weight_backward())

    def update(self, parameters, tensors, optimiser="adamw"):
        return float(parameters)


class EvenPrices(FlopPrices):
    """Every segment of work takes one second forward and two backward; updates are free."""

    def forward(self, operators):
        return 1.0

    def backward(self, operators):
        return 2.0

    def weight(self, operators):
        return 1.0

    def update(self, parameters, tensors, optimiser="adamw"):
        return 0.0


class Products(FlopPrices):
    """Only products of matrices take time: they are shared out without a rest."""

    def forward(self, operators):
        return self._products(kernel for op in operators for kernel in op.forward())

    def backward(self, operators):
        return self._products(kernel for op in operators for kernel in op.backward())

    def weight(self, operators):
        return self._products(kernel for op in operators for kernel in op.weight_backward())

    @staticmethod
    def _products(kernels):
        return sum(kernel.flops for kernel in kernels if kernel.kind == "matmul")


ROUNDS = {
    Act.ALL_REDUCE: lambda n: 2 * (n - 1),
    Act.ALL_GATHER: lambda n: n - 1,
    Act.REDUCE_SCATTER: lambda n: n - 1,
    Act.ALL_TO_ALL: lambda n: n - 1,
}
"""Rounds of the ring, each of which moves 1/n of the vector."""


def clocked(step: Step, byte_s: float = 0.0, round_s: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of every operation on a network in which nobody disturbs anybody."""
    start, end = np.zeros(step.operations), np.zeros(step.operations)
    for at in range(step.operations):
        start[at] = max((end[dep] for dep in step.dep[step.dep_start[at] : step.dep_start[at + 1]]), default=0.0)
        amount, act = float(step.amount[at]), Act(int(step.act[at]))
        if act is Act.COMPUTE:
            end[at] = start[at] + amount
        elif act is Act.SEND:
            end[at] = start[at] + amount * byte_s + round_s * int(step.repeats[at])
        else:
            members = len(step.groups[int(step.group[at])])
            rounds = ROUNDS[act](members)
            end[at] = start[at] + rounds * (amount / members * byte_s + round_s * int(step.repeats[at]))
    return start, end


def step_time(step: Step, byte_s: float = 0.0, round_s: float = 0.0) -> float:
    return float(clocked(step, byte_s, round_s)[1].max())


def on_stream(step: Step, name: str) -> np.ndarray:
    """Which operations are on the stream of this name."""
    return step.stream == step.streams.index(name)
