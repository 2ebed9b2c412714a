"""A mixture of experts: every token goes to a few of many feed-forward networks.

Tokens are sorted by expert, all experts run as one grouped product, and the results are put back in order and summed
with the router's weights, as transformers 5 does on CUDA, or as Megatron-Core does (`core_experts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from ropewalk.workload import core_experts as core
from ropewalk.workload import kernel as k
from ropewalk.workload import wide
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Role, Split, part

STRIDED = "broadcast"
"""Gates and neurons are halves of the rows of one product: kernels that read them go from row to row, as those do that
repeat a row."""
SORT_PASSES = 8
"""A radix sort of 64-bit keys with their places goes over both eight bits at a time."""


@dataclass(frozen=True)
class SortTokens(Operator):
    """Copies of the tokens in the order of their experts."""

    tokens: int
    choices: int
    """Experts a token goes to."""
    hidden: int
    experts: int
    fused: bool = False
    """Places are found and tokens copied by one kernel each, and copies summed by one."""

    @property
    def slots(self) -> int:
        return self.tokens * self.choices

    def forward(self) -> tuple[Kernel, ...]:
        if self.fused:
            return wide.integers(self.slots), core.permuted(self.slots * self.hidden)
        sort = wide.integers(self.slots, 32.0 * SORT_PASSES)
        small = wide.integers(self.slots)
        gather = k.pointwise("map", self.slots * self.hidden)
        ends = wide.integers(self.experts)
        return sort, small, gather, small, small, small, ends

    def backward(self) -> tuple[Kernel, ...]:
        if self.fused:
            return (k.pointwise("map", self.tokens * self.hidden, self.choices * core.PERMUTED),)
        small = wide.integers(self.slots)
        return small, k.embedding("backward", self.slots, self.hidden, self.tokens)

    def saved_bytes(self) -> float:
        return 24.0 * self.slots

    def split(self, split: Split) -> SortTokens:
        return replace(self, tokens=part(self.tokens, split.context * split.ways(Role.ROUTED)))

    def host(self) -> tuple[str, ...]:
        if self.fused:
            return "scale", "embedding"
        return "softmax", "scale", "embedding", "embedding", "cast", "mean", "mean"


@dataclass(frozen=True)
class Experts(Operator):
    """`experts` gated networks over `slots` tokens that lie sorted by expert."""

    slots: int
    experts: int
    hidden: int
    ffn: int
    masked: bool = True
    """Slots that belong to no expert are set to zero around every product, as transformers 5.17 does; later it does
    so only under expert parallelism."""
    fused: bool = False
    """The gate is one kernel."""
    accumulates: bool = False
    """Gradients of weights are added to those there are as the products that make them end."""
    gradient_bytes: float = 4.0
    """Bytes of what they are added to."""
    biased: bool = False
    """Both products have a bias."""
    transformer_engine: bool = False
    """What products read again is kept as narrow as they are, as Transformer Engine does."""
    apart: bool = False
    """Each expert is a product of its own, with what Megatron-Core launches around them."""
    clamped: bool = False
    """Gates are clamped."""
    resorted: bool = False
    """Tokens arrive sorted by sender (NCCL's all-to-all): they are sorted by expert before the products, and sorted
    back behind them."""
    remade: bool = False
    """Gates are computed again in the backward pass (Megatron-Core's `moe_act`)."""
    glued: bool = False
    """Gates and biases are part of the products before them, which hand on what they make as narrow as the next ones
    want it (Transformer Engine's fused grouped MLP, 2026)."""
    ungated: bool = False
    """Neurons are squared where they are above zero, without a gate: the first product makes them alone."""
    router_pads: bool = False
    """Routers send as many tokens to each expert as narrow products want (`--moe-router-padding-for-quantization`)."""
    filled: bool = False
    """Rows are copied to where there is room for those that are added, and back behind the products."""
    exact: bool = False
    """They are never narrowed to 8 bits or fewer."""

    @property
    def _first(self) -> int:
        """Numbers that the first product makes of a token: gates and neurons."""
        return self.ffn if self.ungated else 2 * self.ffn

    def _bent(self) -> tuple[Kernel, ...]:
        """Neurons squared in one kernel, or each operation in its own."""
        return (k.pointwise("map", self.slots * self.ffn),) * (1 if self.fused or self.apart else 2)

    def _bent_back(self) -> tuple[Kernel, ...]:
        return (k.pointwise("map", self.slots * self.ffn, 2),) * (1 if self.fused or self.apart else 2)

    def _gate(self) -> tuple[Kernel, ...]:
        if self.ungated:
            return self._bent()
        neurons = self.slots * self.ffn
        if self.apart:
            return core.gate(neurons, clamped=self.clamped)
        if self.fused:
            return (k.pointwise("map", neurons, 2),)
        return k.pointwise(STRIDED, neurons), k.pointwise(STRIDED, neurons, 2)

    def _gate_backward(self) -> tuple[Kernel, ...]:
        if self.ungated:
            return self._bent_back()
        neurons = self.slots * self.ffn
        if self.apart:
            return core.gate_backward(neurons, clamped=self.clamped)
        if self.fused:
            return (k.pointwise("map", neurons, 3, 2),)
        halves = k.pointwise(STRIDED, neurons, 2)
        return halves, k.pointwise("map", neurons, 2), halves, k.pointwise("cat", 2 * neurons)

    def forward(self) -> tuple[Kernel, ...]:
        if self.apart:
            biases = core.biases(self.slots, self.hidden) if self.biased and not self.glued else ()
            return (
                *self._resorted(),
                *self._filled(),
                self._product("forward", self._first, self.hidden),
                *(() if self.glued else self._gate()),
                self._product("forward", self.hidden, self.ffn, handed=self.glued),
                *biases,
                *self._filled(),
                *self._resorted(),
            )
        return (
            *self._masks(self.hidden)[-1:],  # tokens were copied, and are set to zero where they are
            self._product("forward", self._first, self.hidden),
            *self._biases(self._first),
            *self._masks(self._first),
            *self._gate(),
            self._product("forward", self.hidden, self.ffn),
            *self._biases(self.hidden),
            *self._masks(self.hidden),
        )

    def backward(self) -> tuple[Kernel, ...]:
        if self.apart:
            return self._backward_apart()
        return (
            *self._masks(self.hidden),
            *self._weight_gradient(self.hidden, self.ffn),
            self._product("input_grad", self.ffn, self.hidden),
            *self._gate_backward(),
            *self._masks(self._first),
            *self._weight_gradient(self._first, self.hidden),
            self._product("input_grad", self.hidden, self._first),
            *self._masks(self.hidden),
        )  # fmt: skip

    def _backward_apart(self) -> tuple[Kernel, ...]:
        return (
            *self._resorted(),
            *self._filled(),
            *(core.biases_backward(self.slots, self.hidden) if self.biased and not self.glued else ()),
            *(self._gate() if self.remade and not self.glued else ()),
            *self._weight_gradient(self.hidden, self.ffn),
            self._product("input_grad", self.ffn, self.hidden),
            *(() if self.glued else self._gate_backward()),
            *self._weight_gradient(self._first, self.hidden),
            self._product("input_grad", self.hidden, self._first, handed=self.glued),
            *self._filled(),
            *self._resorted(),
        )

    def summed_in(self, gradient_bytes: float) -> Experts:
        return replace(self, gradient_bytes=gradient_bytes) if self.accumulates else self

    def padded(self, rows: int) -> Experts:
        """Transformer Engine pads the rows of each expert, at least to one multiple.

        How many tokens an expert gets is left to chance, so on average half a multiple is added. Where NCCL brings them
        they are copied for that; dispatchers that sort tokens pad them at once.
        """
        multiple = core.GLUED_ROWS if self.glued else 1 if self.exact else rows
        if multiple == 1:
            return self
        each = max(self.slots / self.experts + (multiple - 1) / 2, multiple)
        filled = self.resorted and not self.glued and not self.router_pads
        return replace(self, slots=ceil(each * self.experts), filled=filled)

    def _filled(self) -> tuple[Kernel, ...]:
        return (k.pointwise("map", self.slots * self.hidden),) if self.filled else ()

    def _resorted(self) -> tuple[Kernel, ...]:
        return (core.permuted(self.slots * self.hidden),) if self.resorted else ()

    def weight_kernels(self) -> tuple[int, ...]:
        found = [at for at, kernel in enumerate(self.backward()) if kernel.form == "weight_grad"]
        own_biases = self.biased and not self.apart
        return tuple(at + behind for at in found for behind in range(1 + self.accumulates + own_biases))

    def _weight_gradient(self, columns: int, inner: int) -> tuple[Kernel, ...]:
        product = self._product("weight_grad", columns, inner)
        added = (k.accumulation(self.experts * columns * inner, self.gradient_bytes),) if self.accumulates else ()
        summed = (k.rowwise("column_sum", self.slots, columns, 1, 0),) if self.biased and not self.apart else ()
        return product, *added, *summed

    def _biases(self, width: int) -> tuple[Kernel, ...]:
        """Biases are added apart, each to the rows of its expert; one kernel of the product does both where fused."""
        return (k.pointwise("broadcast", self.slots * width, 2),) if self.biased and not self.fused else ()

    def _masks(self, width: int) -> tuple[Kernel, ...]:
        """A copy, whose rows without an expert are then set to zero."""
        copied, zeroed = k.pointwise("map", self.slots * width), k.pointwise("broadcast", self.slots * width, 2)
        return (copied, zeroed) if self.masked else ()

    def _product(self, form: str, columns: int, inner: int, *, handed: bool = False) -> Kernel:
        """The product of all slots with the weights of their experts, or the gradient of these weights."""
        apart = self.apart and not self.glued
        return k.grouped_matmul(
            form, self.experts, self.slots, columns, inner, exact=self.exact, handed=handed, apart=apart
        )

    def parameters(self) -> int:
        biases = self.experts * (self._first + self.hidden) if self.biased else 0
        return self.experts * self.hidden * (self._first + self.ffn) + biases

    def parameter_tensors(self) -> int:
        return 4 if self.biased else 2

    def saved_elements(self) -> float:
        neurons = 2 if self.remade else 3 if self.fused else 4
        if self.ungated:
            neurons = 1 if self.remade else 2 if self.fused else 3
        return self.slots * (self.hidden + neurons * self.ffn)

    def narrow_elements(self) -> float:
        read = self.hidden if self.remade else self.hidden + self.ffn
        return self.slots * read if self.transformer_engine and not self.exact else 0.0

    def narrow_parameters(self) -> int:
        narrow = self.transformer_engine and not self.exact
        return self.experts * self.hidden * (self._first + self.ffn) if narrow else 0

    def split(self, split: Split) -> Experts:
        """Expert parallelism leaves the slots as they are: fewer experts, tokens of more ranks."""
        routed = split.ways(Role.ROUTED)
        return replace(
            self, slots=part(self.slots, split.context * routed), experts=part(self.experts, split.expert),
            ffn=part(self.ffn, 1 if split.folded else split.tensor),
        )  # fmt: skip

    def host(self) -> tuple[str, ...]:
        if self.glued:
            return "batched_matmul", "batched_matmul"
        if self.apart:
            biases = (*("multiply", "add") * self.experts, "cat", "cast") if self.biased else ()
            halves = ("cat", "scale", "scale") if self.clamped else ()
            sorts = ("embedding", "embedding") if self.resorted else ()
            copies = ("copy", "copy") if self.filled else ()
            products = ("wide_expert" if self.exact else "expert",) * (2 * self.experts)
            return *products, "silu", *biases, *halves, *sorts, *copies
        return "batched_matmul", "silu", "multiply", "batched_matmul", "view", *("scale",) * (3 if self.masked else 0)


@dataclass(frozen=True)
class SumExperts(Operator):
    """The experts' results by the router's weights, back in the order of the tokens and summed for each token."""

    tokens: int
    choices: int
    hidden: int
    fused: bool = False
    """Weighted, put back and summed by one kernel, also their gradients."""
    narrow: bool = False
    """The router's weights are as narrow as the results; otherwise float32 numbers, and so is all that is made of
    them."""
    compiled: bool = False
    """One kernel on the way forth alone."""

    @property
    def slots(self) -> int:
        return self.tokens * self.choices

    def forward(self) -> tuple[Kernel, ...]:
        elements, whole = self.slots * self.hidden, self.tokens * self.hidden
        if self.fused:
            return (k.pointwise("map", whole, self.choices * core.PERMUTED),)
        if self.compiled:
            return (k.pointwise("map", whole, self.choices),)
        small = wide.integers(self.slots)
        if self.narrow:
            summed = k.rowwise("column_sum", self.slots, self.hidden, 1, 1 / self.choices)
            return k.pointwise("broadcast", elements, 2), small, small, k.pointwise("map", elements), summed
        return (
            wide.pointwise("broadcast", elements, 0.5, 1), small, small, wide.pointwise("map", elements),
            wide.rowwise("column_sum", self.slots, self.hidden, 1, 1 / self.choices), wide.cast(whole),
        )  # fmt: skip

    def backward(self) -> tuple[Kernel, ...]:
        elements, whole = self.slots * self.hidden, self.tokens * self.hidden
        if self.fused:  # what is spread back, and the products with the results that are the weights' gradients
            return (k.pointwise("map", elements, 2 * core.PERMUTED, core.PERMUTED),)
        ordered = k.embedding("backward", self.slots, self.hidden, self.slots)
        if self.narrow:
            return (
                k.pointwise("map", elements), ordered, k.pointwise("map", elements, 2),
                k.pointwise("broadcast", elements, 2), k.rowwise("row_mean", self.slots, self.hidden, 1, 0),
            )  # fmt: skip
        rows = wide.WIDE * elements
        return (
            wide.cast(whole), wide.pointwise("map", elements, 1 / self.choices, 1),
            replace(ordered, elements_read=0.0, elements_written=0.0, bytes_fixed=ordered.bytes_fixed + 3 * rows),
            wide.pointwise("map", elements, 1.5, 1), wide.pointwise("map", elements), wide.cast(elements),
            wide.rowwise("row_mean", self.slots, self.hidden, 1, 0),
        )  # fmt: skip

    def saved_elements(self) -> float:
        return self.slots * self.hidden

    def saved_bytes(self) -> float:
        return 20.0 * self.slots

    def split(self, split: Split) -> SumExperts:
        return replace(self, tokens=part(self.tokens, split.context * split.ways(Role.ROUTED)))

    def host(self) -> tuple[str, ...]:
        return ("embedding",) if self.fused else ("multiply", "scale", "scale", "embedding", "mean", "cast")
