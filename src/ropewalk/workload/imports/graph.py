"""What an importer has read: the values of a model, and the operations on them in the order in which they run.

The importers of PyTorch modules and of ONNX files both speak of a model in these words; `layering` turns them into
layers. A `Value` is a tensor without numbers. It knows what matters for time and memory: its shape, whether a gradient
flows back through it, which parameters it is made of, and of which other value it is merely a view.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ropewalk.workload.operator import Operator


@dataclass(eq=False)
class Value:
    """A tensor of the model. Two values are the same only if they are one object."""

    shape: tuple[int, ...]
    gradient: bool = False
    """Does the backward pass need the gradient of it?"""
    parameters: tuple[str, ...] = ()
    """The parameters of which it is a view, or which it is."""
    data: bool = True
    """Does it depend on the batch? Parameters and what is computed from them alone do not."""
    base: Value | None = None
    """The value whose memory it shows."""
    swapped: bool = False
    """Its last two dimensions lie in memory the other way round."""
    strided: bool = False
    """Its elements do not lie in the order of its shape: to reshape it is to copy it."""
    wide: bool = False
    """It is float32 in a model of 16-bit numbers."""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def root(self) -> Value:
        """The value that owns the memory."""
        value = self
        while value.base is not None:
            value = value.base
        return value

    @property
    def weight(self) -> bool:
        """Is it made of trained parameters alone?"""
        return self.gradient and not self.data


@dataclass
class UsedOperator:
    """An operator and what the import knows of its use."""

    operator: Operator
    saves: tuple[Value, ...] = ()
    """Values that stay in memory until the backward pass of this operator."""
    skips: tuple[int, ...] = ()
    """Kernels of its backward pass, by position, whose result nobody needs."""


@dataclass
class GraphEvent:
    """One operation of the model."""

    name: str
    """What an error message calls it."""
    place: str | None
    """The layer it belongs to; None where it stands between layers."""
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    works: list[UsedOperator] = field(default_factory=list)
    """What it costs; empty for a view."""


def result(shape: tuple[int, ...], reads: tuple[Value, ...]) -> Value:
    """A new value computed from others: it needs a gradient, or depends on data, if one of them does."""
    return Value(shape, any(v.gradient for v in reads), data=any(v.data for v in reads))


def view(shape: tuple[int, ...], of: Value) -> Value:
    """A value that shows the memory of another."""
    return Value(shape, of.gradient, of.parameters, of.data, of, strided=of.strided, wide=of.wide)
