"""Operators from shapes: the part that importers share, whatever they call an operation.

Everything here is whole on every rank: an import does not know along which dimension a model could be split.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Dropout, Normalise, Pointwise, Softmax
from ropewalk.workload.image import BatchNorm
from ropewalk.workload.imports.graph import UsedOperator, Value
from ropewalk.workload.loss import CrossEntropy
from ropewalk.workload.operator import Role
from ropewalk.workload.reduction import Broadcast, Reduction
from ropewalk.workload.table import Embedding
from ropewalk.workload.written import Launch, Routine, Written

WHOLE = Role.WHOLE


def linear(
    x: Value, weight: Value, outputs: int, bias: Value | None = None, *, turned: bool = False
) -> list[UsedOperator]:
    """Vectors times a weight, which lies as [outputs, inputs] or, `turned`, as [inputs, outputs]."""
    inputs = weight.elements // outputs
    operator = Linear(x.elements // inputs, inputs, outputs, bias is not None, first=not x.gradient, turned=turned)
    return [UsedOperator(operator, (x,))]


def matmul(left: Value, right: Value) -> list[UsedOperator]:
    """[…, m, k] x […, k, n], with one-dimensional factors as rows and columns, as everybody defines it."""
    inner = left.shape[-1]
    columns = right.shape[-1] if len(right.shape) > 1 else 1
    if len(right.shape) <= 2:  # all rows of the left factor meet the same matrix
        if right.weight and left.data:
            return linear(left, right, columns, turned=not right.swapped)
        return product(left, right, 1, left.elements // inner, columns, inner)
    rows = left.shape[-2] if len(left.shape) > 1 else 1
    count = math.prod(broadcast(left.shape[:-2], right.shape[:-2]))
    return product(left, right, count, rows, columns, inner)


def product(left: Value, right: Value, count: int, rows: int, columns: int, inner: int) -> list[UsedOperator]:
    """A product of two activations, or of an activation and a constant."""
    operator = Product(count, rows, columns, inner, WHOLE, transposed=right.swapped)
    needed = (left.gradient, right.gradient)
    saves = (*((right,) if left.gradient else ()), *((left,) if right.gradient else ()))
    return [UsedOperator(operator, saves, tuple(at for at, needs in enumerate(needed) if not needs))]


def broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The shape two shapes take together.

    >>> broadcast((8, 1, 3), (5, 1))
    (8, 5, 3)
    """
    longest = max(len(left), len(right))
    pairs = zip((1,) * (longest - len(left)) + left, (1,) * (longest - len(right)) + right, strict=True)
    return tuple(max(pair) if min(pair) == 1 else min(pair) for pair in pairs)


def attention(
    query: Value, key: Value, value: Value, out: Value, *, causal: bool, dropped: bool = False
) -> list[UsedOperator]:
    """Softmax(Q Kᵀ) V over […, heads, length, size]; where values are of another size than keys, of the mean size."""
    *outer, queries, size = query.shape
    heads = outer[-1] if outer else 1
    batch = math.prod(outer[:-1])
    kv_heads = key.shape[-3] if len(key.shape) > 2 else 1
    mean = (size + value.shape[-1] + 1) // 2
    operator = FusedAttention(batch, heads, kv_heads, queries, key.shape[-2], mean, causal, dropped=dropped)
    return [UsedOperator(operator, (query, key, value, out))]


def normalise(x: Value, width: int, form: str = "layer_norm") -> list[UsedOperator]:
    """Rows of `width` elements brought to a common scale."""
    return [UsedOperator(Normalise(x.elements // width, width, form, WHOLE), (x,))]


def batch_norm(x: Value, training: bool) -> list[UsedOperator]:
    """Channels brought to a common scale over the batch; without training, a scale and a shift that are known."""
    batch, channels = x.shape[0], x.shape[1]
    if training:
        return [UsedOperator(BatchNorm(batch, channels, x.elements // (batch * channels)), (x,))]
    return [UsedOperator(Pointwise(x.elements, backward_reads=1, role=WHOLE, call="scale"), (x,))]


def softmax(x: Value, out: Value, dim: int, form: str = "softmax") -> list[UsedOperator]:
    """Probabilities along one dimension."""
    width = x.shape[dim] if x.shape else 1
    return [UsedOperator(Softmax(x.elements // width, width, form, WHOLE), (out,))]


def cross_entropy(x: Value, classes: int) -> list[UsedOperator]:
    """The loss of a classifier; the log-probabilities are kept."""
    probabilities = Value(x.shape, x.gradient)
    return [UsedOperator(CrossEntropy(x.elements // classes, classes), (probabilities,))]


def picked(x: Value, rows: int) -> list[UsedOperator]:
    """One number out of each row, and their mean; the gradient is put among zeros."""
    zeros = Pointwise(x.elements, passes=0, backward_reads=0, saved=0.0, role=WHOLE)
    return [UsedOperator(Reduction(1, rows)), UsedOperator(zeros)]


def embedding(table: Value, lookups: int) -> list[UsedOperator]:
    """Rows out of a table."""
    vocabulary = table.shape[0]
    return [UsedOperator(Embedding(lookups, vocabulary, table.elements // vocabulary))]


def dropout(x: Value) -> list[UsedOperator]:
    return [UsedOperator(Dropout(x.elements, WHOLE))]


def reduction(x: Value, out: Value, *, keeps: bool = False) -> list[UsedOperator]:
    """Many elements become few; `keeps`: the gradient needs the elements again, as of an extreme or a norm."""
    rows = max(1, out.elements)
    operator = Reduction(rows, max(1, x.elements // rows), saved=float(keeps), widened=x.wide)
    return [UsedOperator(operator, (x,) if keeps else ())]


def copy(x: Value, out: Value, call: str = "copy") -> list[UsedOperator]:
    """The same elements elsewhere, or in another order."""
    form = "cat" if call == "cat" else "transpose" if x.swapped else "permute"
    moved = Pointwise(
        out.elements, form=form, backward_form=form, backward_reads=1, saved=0.0, role=WHOLE, call=call,
        widened=out.wide,
    )  # fmt: skip
    return [UsedOperator(moved)]


CAST = Routine("cast", forward=(Launch("cast"),), backward=(Launch("cast"),), calls=("cast",))


def cast(x: Value) -> list[UsedOperator]:
    """To another type of number and, for the gradient, back."""
    return [UsedOperator(Written(CAST, x.elements, 1, WHOLE))]


def fill(out: Value) -> list[UsedOperator]:
    """Elements that come from nowhere: zeros, counts, random numbers."""
    return [UsedOperator(Pointwise(out.elements, reads=0, backward_passes=0, saved=0.0, role=WHOLE))]


def elementwise(
    reads: tuple[Value, ...], out: Value, *, saves: tuple[Value, ...], passes_back: int | None = None,
    backward_reads: int = 2, call: str = "relu", form: str = "map",
) -> list[UsedOperator]:  # fmt: skip
    """A function of every element of one or more tensors; small ones are spread over the shape of the result.

    Each tensor that needs a gradient costs a pass in the backward pass unless told otherwise (the gradients of a sum
    pass through unchanged), and a sum over rows if it was spread.
    """
    full = [value for value in reads if value.elements == out.elements]
    rows = [value for value in reads if 1 < value.elements < out.elements]
    needing = [value for value in reads if value.gradient]
    operator = Pointwise(
        out.elements, reads=max(1, len(full + rows)), form="broadcast" if full and rows else form,
        backward_form="gelu_backward" if form == "gelu" else "map", backward_reads=backward_reads,
        backward_passes=len(needing) if passes_back is None else passes_back, saved=0.0, role=WHOLE, call=call,
        widened=out.wide,
    )  # fmt: skip
    return [UsedOperator(operator, saves if needing else ()), *spread(needing, out)]


def spread(values: list[Value], out: Value) -> list[UsedOperator]:
    """Sums for the gradients of values that are smaller than what was made of them."""
    return [UsedOperator(_summed(value, out)) for value in values if 0 < value.elements < out.elements]


def _summed(value: Value, out: Value) -> Broadcast:
    times = out.elements // value.elements
    along_rows = bool(value.shape) and value.shape[-1] == 1 < out.shape[-1]
    if along_rows:
        return Broadcast(value.elements, times, "row_mean", widened=out.wide)
    return Broadcast(times, value.elements, widened=out.wide)


def forward_only(work: UsedOperator) -> UsedOperator:
    """The same work where no gradient comes back."""
    if isinstance(work.operator, Pointwise):
        return UsedOperator(replace(work.operator, backward_passes=0))
    return UsedOperator(work.operator, (), tuple(range(len(work.operator.backward()))))
