"""What every operation of PyTorch costs, by the name it has in an exported graph.

`WORKS` maps names to functions from a `Call` to work. Names that end in `_` work in place and cost the same. Operations
that PyTorch itself marks as element-wise need no entry; views are told apart before this table is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ropewalk.workload.imports import windows, works
from ropewalk.workload.imports.contraction import contraction
from ropewalk.workload.imports.graph import UsedOperator, Value
from ropewalk.workload.lstm import Lstm


@dataclass
class Call:
    """An operation with its arguments under the names of its schema, tensors as values."""

    arguments: Mapping[str, Any]
    outs: tuple[Value, ...]
    causal_masks: bool = False
    """Are masks that attention is given causal ones?"""

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def first(self) -> Value:
        """The tensor the operation works on."""
        return self.tensors()[0]

    @property
    def out(self) -> Value:
        return self.outs[0]

    def tensors(self) -> tuple[Value, ...]:
        found: list[Value] = []
        for argument in self.arguments.values():
            found.extend(v for v in (argument if isinstance(argument, list | tuple) else [argument]) if is_value(v))
        return tuple(found)

    def sides(self, name: str, dims: int, default: int | None = None) -> list[int]:
        """An argument that is a number for every side, or one for all."""
        given = self.arguments.get(name)
        if given is None or given == []:
            given = [default]
        sides = list(given) if isinstance(given, list | tuple) else [given]
        return sides * dims if len(sides) == 1 else sides


def is_value(argument: Any) -> bool:
    return isinstance(argument, Value)


Works = Callable[[Call], list[UsedOperator] | None]
"""What a call costs; None for a form of it that is not known."""


def _linear(call: Call) -> list[UsedOperator]:
    x, weight = call["input"], call["weight"]
    if not weight.gradient:
        return works.product(x, weight, 1, x.elements // x.shape[-1], weight.shape[0], x.shape[-1])
    return works.linear(x, weight, weight.shape[0], call["bias"])


def _addmm(call: Call) -> list[UsedOperator]:
    """A bias plus a product; where the bias is not a vector of weights it is a sum of its own."""
    added, left, right = call.tensors()
    if right.weight and left.data and len(right.shape) == 2 and added.weight and added.elements == right.shape[-1]:
        return works.linear(left, right, right.shape[-1], added, turned=not right.swapped)
    summed = works.elementwise((added, call.out), call.out, saves=(), passes_back=0, call="add")
    return [*works.matmul(left, right), *summed]


def _matmul(call: Call) -> list[UsedOperator]:
    left, right = call.tensors()[:2]
    return works.matmul(left, right)


def _einsum(call: Call) -> list[UsedOperator] | None:
    return contraction(call["equation"], tuple(call["tensors"]))


def _convolution(call: Call) -> list[UsedOperator]:
    x, weight = call["input"], call["weight"]
    dims = len(weight.shape) - 2
    stride, dilation = call.sides("stride", dims, 1), call.sides("dilation", dims, 1)
    padding = call.arguments.get("padding")
    if isinstance(padding, str):
        spans = zip(weight.shape[2:], dilation, strict=True)
        padding = [by * (size - 1) // 2 if padding == "same" else 0 for size, by in spans]
    else:
        padding = call.sides("padding", dims, 0)
    make = windows.transposed if call.arguments.get("transposed") else windows.convolution
    return make(x, weight, call["bias"], call.out, stride, padding, dilation, call["groups"])


def _transposed(call: Call) -> list[UsedOperator]:
    dims = len(call["weight"].shape) - 2
    stride, dilation = call.sides("stride", dims, 1), call.sides("dilation", dims, 1)
    padding = call.sides("padding", dims, 0)
    return windows.transposed(
        call["input"], call["weight"], call["bias"], call.out, stride, padding, dilation, call["groups"]
    )


def _pool(form: str, dims: int) -> Works:
    def pool(call: Call) -> list[UsedOperator]:
        kernel = call.sides("kernel_size", dims)
        stride = call.sides("stride", dims) if call["stride"] else kernel
        return windows.pool(form, call["self"], call.out, kernel, stride, call.sides("padding", dims, 0))

    return pool


def _adaptive(form: str, dims: int) -> Works:
    return lambda call: windows.adaptive_pool(form, call["self"], call.out, dims)


def _batch_norm(call: Call) -> list[UsedOperator]:
    return works.batch_norm(call["input"], bool(call.arguments.get("training", True)))


def _instance_norm(call: Call) -> list[UsedOperator]:
    x = call["input"]
    return works.normalise(x, x.elements // (x.shape[0] * x.shape[1]))


def _layer_norm(form: str) -> Works:
    def normalise(call: Call) -> list[UsedOperator]:
        x, width = call["input"], 1
        for side in call["normalized_shape"]:
            width *= side
        return works.normalise(x, width, form)

    return normalise


def _group_norm(call: Call) -> list[UsedOperator]:
    x = call["input"]
    return works.normalise(x, x.elements // (x.shape[0] * call["num_groups"]))


def _softmax(form: str) -> Works:
    return lambda call: works.softmax(call.first(), call.out, call["dim"], form)


def _attention(call: Call) -> list[UsedOperator]:
    causal = bool(call["is_causal"]) or (call.causal_masks and call["attn_mask"] is not None)
    dropped = bool(call["dropout_p"])
    return works.attention(call["query"], call["key"], call["value"], call.out, causal=causal, dropped=dropped)


def _embedding(call: Call) -> list[UsedOperator]:
    return works.embedding(call["weight"], call["indices"].elements)


def _index(call: Call) -> list[UsedOperator]:
    """Elements by index: rows of a table of weights, or a copy."""
    table = call["self"]
    if table.weight and call.out.elements:
        return works.embedding(table, max(1, call.out.elements * table.shape[0] // table.elements))
    return works.copy(table, call.out)


def _cross_entropy(call: Call) -> list[UsedOperator]:
    x = call["self"]
    return works.cross_entropy(x, x.shape[1] if len(x.shape) > 1 else x.shape[0])


def _picked(call: Call) -> list[UsedOperator]:
    """Negative log-likelihood of log-probabilities that are already there; its gradient starts from zeros."""
    return works.picked(call["self"], call["target"].elements)


def _loss(call: Call) -> list[UsedOperator]:
    """A function of every pair of elements, then their mean."""
    given = call.tensors()
    pairs = Value(given[0].shape, any(v.gradient for v in given))
    made = works.elementwise(given[:2], pairs, saves=given[:2])
    return made if call.out.elements == pairs.elements else [*made, *works.reduction(pairs, call.out)]


def _dropout(call: Call) -> list[UsedOperator]:
    return works.dropout(call.first()) if call["train"] is not False and call["p"] > 0 else []


def _reduction(keeps: bool) -> Works:
    return lambda call: works.reduction(call.first(), call.out, keeps=keeps)


def _copy(name: str = "copy") -> Works:
    return lambda call: works.copy(call.first(), call.out, name) if call.tensors() else works.fill(call.out)


def _cast(call: Call) -> list[UsedOperator]:
    return works.cast(call.first())


def _fill(call: Call) -> list[UsedOperator]:
    return works.fill(call.out)


def _nothing(call: Call) -> list[UsedOperator]:
    return []


def _lstm(call: Call) -> list[UsedOperator]:
    x = call["input"]
    steps, batch = (x.shape[1], x.shape[0]) if call["batch_first"] else (x.shape[0], x.shape[1])
    each = 4 if call["has_biases"] else 2
    cells = [Lstm(steps, batch, at.shape[1], at.shape[0] // 4) for at in call["params"][::each]]
    return [UsedOperator(cell, (Value((int(cell.saved_elements()),), True),)) for cell in cells]


def _glu(call: Call) -> list[UsedOperator]:
    return works.elementwise((call["self"],), call.out, saves=(call["self"],))


def _spread_copy(call: Call) -> list[UsedOperator]:
    """The same elements several times: the gradient is summed over the copies."""
    return [*works.copy(call.first(), call.out), *works.spread([v for v in call.tensors()[:1] if v.gradient], call.out)]


WORKS: dict[str, Works] = {
    "linear": _linear,
    "addmm": _addmm,
    "baddbmm": _addmm,
    **dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot"), _matmul),
    "einsum": _einsum,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed),
    **{f"max_pool{dims}d": _pool("max", dims) for dims in (1, 2, 3)},
    **{f"max_pool{dims}d_with_indices": _pool("max", dims) for dims in (1, 2, 3)},
    **{f"avg_pool{dims}d": _pool("average", dims) for dims in (1, 2, 3)},
    **{f"adaptive_max_pool{dims}d": _adaptive("max", dims) for dims in (1, 2, 3)},
    **{f"adaptive_avg_pool{dims}d": _adaptive("average", dims) for dims in (1, 2, 3)},
    **dict.fromkeys(("batch_norm", "native_batch_norm", "_native_batch_norm_legit_functional"), _batch_norm),
    "instance_norm": _instance_norm,
    "layer_norm": _layer_norm("layer_norm"),
    "rms_norm": _layer_norm("rms_norm"),
    "group_norm": _group_norm,
    **dict.fromkeys(("softmax", "_softmax"), _softmax("softmax")),
    **dict.fromkeys(("log_softmax", "_log_softmax"), _softmax("log_softmax")),
    "scaled_dot_product_attention": _attention,
    "embedding": _embedding,
    **dict.fromkeys(("index", "index_select", "gather"), _index),
    "cross_entropy_loss": _cross_entropy,
    **dict.fromkeys(("nll_loss", "nll_loss_nd", "nll_loss2d", "nll_loss_forward"), _picked),
    **dict.fromkeys(
        (
            "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
            "binary_cross_entropy_with_logits", "kl_div",
        ),
        _loss,
    ),
    **dict.fromkeys(("dropout", "native_dropout", "feature_dropout", "alpha_dropout"), _dropout),
    **dict.fromkeys(("sum", "mean", "count_nonzero", "any", "all", "argmax", "argmin"), _reduction(keeps=False)),
    **dict.fromkeys(
        (
            "amax", "amin", "max", "min", "var", "std", "var_mean", "std_mean", "prod", "norm", "logsumexp",
            "linalg_vector_norm",
        ),
        _reduction(keeps=True),
    ),
    "lstm": _lstm,
    "glu": _glu,
    **dict.fromkeys(
        (
            "clone", "contiguous", "reshape", "flatten", "_unsafe_view", "copy", "lift_fresh_copy", "pad",
            "constant_pad_nd", "roll", "flip", "tril", "triu", "cumsum", "scatter", "scatter_add", "index_put",
            "index_add", "masked_scatter", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "im2col",
            "reflection_pad1d", "reflection_pad2d", "replication_pad2d", "one_hot", "bernoulli", "expand_copy",
        ),
        _copy(),
    ),
    **dict.fromkeys(("cat", "concat", "stack", "hstack", "vstack", "column_stack"), _copy("cat")),
    **dict.fromkeys(("to", "_to_copy", "type_as"), _cast),
    **dict.fromkeys(
        (
            "repeat", "tile", "repeat_interleave", "upsample_nearest1d", "upsample_nearest2d", "upsample_bilinear2d",
            "upsample_bicubic2d", "upsample_linear1d", "_upsample_nearest_exact2d",
        ),
        _spread_copy,
    ),
    **dict.fromkeys(
        (
            "zeros", "ones", "full", "empty", "arange", "linspace", "rand", "randn", "randint", "zeros_like",
            "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "new_zeros", "new_ones", "new_full",
            "new_empty", "scalar_tensor", "fill", "zero", "eye", "normal", "uniform",
        ),
        _fill,
    ),
    **dict.fromkeys(
        ("_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_size", "sym_constrain_range"), _nothing
    ),
}  # fmt: skip
