"""Linear layers and products of matrices that are both activations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Role, Split, part

WIDE_READ = 8
"""Numbers of 16 bits that are read at once."""


@dataclass(frozen=True)
class Linear(Operator):
    """`rows` vectors of `inputs` numbers become `rows` vectors of `outputs` numbers.

    >>> Linear(8, 4, 6).parameters()
    30
    """

    rows: int
    inputs: int
    outputs: int
    bias: bool = True
    role: Role = Role.WHOLE
    tied: bool = False
    """Its weight belongs to another operator: it is used here, counted there."""
    first: bool = False
    """It reads data, not activations: no gradient of its input is computed."""
    turned: bool = False
    """Its weight lies as [inputs, outputs], as in GPT-2, not as [outputs, inputs]."""
    exact: bool = False
    """It is never narrowed to FP8: heads over words, routers."""
    accumulates: bool = False
    """Gradients of its weight are added to those there are as the product that makes them ends."""
    gradient_bytes: float = 4.0
    """Bytes of what they are added to."""
    transformer_engine: bool = False
    """Transformer Engine runs it: what it keeps and gathers is as narrow as what it multiplies, and it can work in
    chunks while tensor ranks exchange what it reads or makes."""
    padded_outputs: bool = False
    """Where its outputs cannot be read in 16-byte pieces it makes a few more, as torch.compile has it (`pad_mm.py`);
    their gradients are copied to that width first."""

    def forward(self) -> tuple[Kernel, ...]:
        return (self._product("input_grad" if self.turned else "forward", self.rows, self._made, self.inputs),)

    @property
    def _made(self) -> int:
        """Outputs that its products make."""
        return -(-self.outputs // WIDE_READ) * WIDE_READ if self.padded_outputs else self.outputs

    def backward(self) -> tuple[Kernel, ...]:
        made = self._made
        into_input = self._product("forward" if self.turned else "input_grad", self.rows, self.inputs, made)
        weight = (self.inputs, made) if self.turned else (made, self.inputs)
        into_weight = self._product("weight_grad", *weight, self.rows)
        into_bias = k.rowwise("column_sum", self.rows, self.outputs, 1, 0)
        added = (k.accumulation(self.inputs * self.outputs, self.gradient_bytes),) if self.accumulates else ()
        products = (*(() if self.first else (into_input,)), into_weight)
        return (*self._copied(), *products, *added, *((into_bias,) if self.bias else ()))

    def _copied(self) -> tuple[Kernel, ...]:
        """The copy of gradients to the width that products make."""
        return (k.pointwise("map", self.rows * self._made),) if self._made > self.outputs else ()

    def _product(self, form: str, rows: int, columns: int, inner: int) -> Kernel:
        return k.matmul(form, rows, columns, inner, exact=self.exact)

    def weight_kernels(self) -> range:
        return range(len(self._copied()) + (0 if self.first else 1), len(self.backward()))

    def parameters(self) -> int:
        return (0 if self.tied else self.inputs * self.outputs) + (self.outputs if self.bias else 0)

    def parameter_tensors(self) -> int:
        return int(not self.tied) + int(self.bias)

    def saved_elements(self) -> float:
        return self.rows * self.inputs

    def narrow_elements(self) -> float:
        return self.rows * self.inputs if self.transformer_engine and not self.exact else 0.0

    def narrow_parameters(self) -> int:
        return self.inputs * self.outputs if self.transformer_engine and not self.exact else 0

    def summed_in(self, gradient_bytes: float) -> Linear:
        return replace(self, gradient_bytes=gradient_bytes) if self.accumulates else self

    def split(self, split: Split) -> Linear:
        ways = split.tensor
        whole = replace(self, rows=part(self.rows, split.context))
        if self.role is Role.COLUMNS:
            return replace(whole, outputs=part(self.outputs, ways))
        if self.role is Role.ROWS:
            return replace(whole, inputs=part(self.inputs, ways))
        return replace(whole, rows=part(whole.rows, split.ways(self.role)))

    def host(self) -> tuple[str, ...]:
        return ("linear" if self.bias else "linear_without_bias",)


@dataclass(frozen=True)
class Product(Operator):
    """`count` products of two activations, [rows, inner] x [inner, columns]: attention that writes its scores down,
    or the dot products between the features of a recommendation model."""

    count: int
    rows: int
    columns: int
    inner: int
    role: Role = Role.INSIDE
    transposed: bool = True
    """The second factor lies as [columns, inner], as keys do; otherwise as [inner, columns], as values do."""

    def forward(self) -> tuple[Kernel, ...]:
        form = "forward" if self.transposed else "input_grad"
        return (k.matmul(form, self.rows, self.columns, self.inner, self.count),)

    def backward(self) -> tuple[Kernel, ...]:
        form = "input_grad" if self.transposed else "forward"
        return (
            k.matmul(form, self.rows, self.inner, self.columns, self.count),
            k.matmul("weight_grad", self.inner, self.columns, self.rows, self.count),
        )

    def saved_elements(self) -> float:
        return self.count * (self.rows + self.columns) * self.inner

    def split(self, split: Split) -> Product:
        return replace(self, count=part(self.count, split.ways(self.role)), rows=part(self.rows, split.context))

    def host(self) -> tuple[str, ...]:
        return ("batched_matmul",)
