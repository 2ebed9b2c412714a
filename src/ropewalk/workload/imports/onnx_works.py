"""What every operation of ONNX costs, by its type.

`WORKS` maps types to functions from an `OnnxNode` to work; `ELEMENTWISE` gives the types that touch every element once
their name in the table of element-wise operations; `VIEWS` and `ONCE` cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ropewalk.workload.imports import windows, works
from ropewalk.workload.imports.contraction import contraction
from ropewalk.workload.imports.graph import UsedOperator, Value
from ropewalk.workload.lstm import Lstm


@dataclass
class OnnxNode:
    """An operation with its inputs in order, absent ones as None."""

    inputs: tuple[Value | None, ...]
    outs: tuple[Value, ...]
    attributes: dict[str, Any]

    @property
    def x(self) -> Value:
        return self.at(0)

    @property
    def out(self) -> Value:
        return self.outs[0]

    def at(self, position: int) -> Value:
        value = self.inputs[position]
        assert value is not None, "the checker of ONNX has seen that required inputs are there"
        return value

    def maybe(self, position: int) -> Value | None:
        return self.inputs[position] if position < len(self.inputs) else None

    def given(self) -> tuple[Value, ...]:
        return tuple(value for value in self.inputs if value is not None)


Works = Callable[[OnnxNode], list[UsedOperator] | None]
Geometry = tuple[list[int], list[int], list[int]]
"""Stride, padding and dilation of every side."""


def _geometry(node: OnnxNode, kernel: tuple[int, ...]) -> Geometry:
    dims = len(kernel)
    stride = list(node.attributes.get("strides", [1] * dims))
    dilation = list(node.attributes.get("dilations", [1] * dims))
    pads = node.attributes.get("pads", [0] * 2 * dims)
    if node.attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER"):
        half = [by * (size - 1) // 2 for size, by in zip(kernel, dilation, strict=True)]
        return stride, half, dilation
    return stride, [(pads[side] + pads[side + dims]) // 2 for side in range(dims)], dilation


def _convolution(node: OnnxNode) -> list[UsedOperator]:
    weight = node.at(1)
    groups = node.attributes.get("group", 1)
    return windows.convolution(node.x, weight, node.maybe(2), node.out, *_geometry(node, weight.shape[2:]), groups)


def _transposed(node: OnnxNode) -> list[UsedOperator]:
    weight = node.at(1)
    groups = node.attributes.get("group", 1)
    return windows.transposed(node.x, weight, node.maybe(2), node.out, *_geometry(node, weight.shape[2:]), groups)


def _gemm(node: OnnxNode) -> list[UsedOperator]:
    weight, bias = node.at(1), node.maybe(2)
    turned = not node.attributes.get("transB", 0)
    columns = weight.shape[1 if turned else 0]
    if weight.weight and node.x.data:
        return works.linear(node.x, weight, columns, bias, turned=turned)
    rows = node.x.shape[1 if node.attributes.get("transA", 0) else 0]
    return works.product(node.x, weight, 1, rows, columns, node.x.elements // rows)


def _matmul(node: OnnxNode) -> list[UsedOperator]:
    return works.matmul(node.x, node.at(1))


def _einsum(node: OnnxNode) -> list[UsedOperator] | None:
    return contraction(node.attributes["equation"].decode(), node.given())


def _attention(node: OnnxNode) -> list[UsedOperator] | None:
    if len(node.x.shape) != 4:  # heads are hidden in the last dimension
        heads, kv_heads = node.attributes.get("q_num_heads"), node.attributes.get("kv_num_heads")
        if not heads or not kv_heads:
            return None
        batch = node.x.shape[0]
        query, key, value = (
            Value((batch, many, given.shape[1], given.shape[2] // many), given.gradient, base=given)
            for many, given in ((heads, node.x), (kv_heads, node.at(1)), (kv_heads, node.at(2)))
        )
        return works.attention(query, key, value, node.out, causal=bool(node.attributes.get("is_causal", 0)))
    return works.attention(node.x, node.at(1), node.at(2), node.out, causal=bool(node.attributes.get("is_causal", 0)))


def _rows(form: str) -> Works:
    def normalise(node: OnnxNode) -> list[UsedOperator]:
        axis = node.attributes.get("axis", -1)
        width = 1
        for side in node.x.shape[axis:]:
            width *= side
        return works.normalise(node.x, width, form)

    return normalise


def _groups(node: OnnxNode) -> list[UsedOperator]:
    groups = node.attributes.get("num_groups", node.x.shape[1])
    return works.normalise(node.x, node.x.elements // (node.x.shape[0] * groups))


def _batch_norm(node: OnnxNode) -> list[UsedOperator]:
    """Files are mostly written for inference; a training step takes the statistics of the batch all the same."""
    return works.batch_norm(node.x, training=True)


def _softmax(form: str) -> Works:
    return lambda node: works.softmax(node.x, node.out, node.attributes.get("axis", -1), form)


def _pool(form: str) -> Works:
    def pool(node: OnnxNode) -> list[UsedOperator]:
        kernel = node.attributes["kernel_shape"]
        stride, padding, _ = _geometry(node, tuple(kernel))
        return windows.pool(form, node.x, node.out, kernel, stride, padding)

    return pool


def _global_pool(form: str) -> Works:
    return lambda node: windows.adaptive_pool(form, node.x, node.out, len(node.x.shape) - 2)


def _gather(node: OnnxNode) -> list[UsedOperator]:
    table = node.x
    if table.weight and len(table.shape) == 2 and not node.attributes.get("axis", 0):
        return works.embedding(table, node.at(1).elements)
    return works.copy(table, node.out)


def _reduction(keeps: bool) -> Works:
    return lambda node: works.reduction(node.x, node.out, keeps=keeps)


def _copy(call: str) -> Works:
    return lambda node: works.copy(node.x, node.out, call)


def _split(node: OnnxNode) -> list[UsedOperator]:
    return [work for out in node.outs for work in works.copy(node.x, out)]


def _spread(node: OnnxNode) -> list[UsedOperator]:
    return [*works.copy(node.x, node.out), *works.spread([node.x] if node.x.gradient else [], node.out)]


def _dropout(node: OnnxNode) -> list[UsedOperator]:
    return works.dropout(node.x)


def _loss(node: OnnxNode) -> list[UsedOperator]:
    return works.cross_entropy(node.x, node.x.shape[1])


def _lstm(node: OnnxNode) -> list[UsedOperator]:
    steps, batch, inputs = node.x.shape
    cell = Lstm(steps, batch, inputs, node.attributes["hidden_size"])
    both = node.attributes.get("direction", b"forward") == b"bidirectional"
    kept = Value((int(cell.saved_elements()),), True)
    return [UsedOperator(cell, (kept,)), *([UsedOperator(cell, (Value(kept.shape, True),))] if both else [])]


WORKS: dict[str, Works] = {
    "Conv": _convolution, "ConvTranspose": _transposed, "Gemm": _gemm, "MatMul": _matmul, "Einsum": _einsum,
    "Attention": _attention, "LSTM": _lstm,
    "LayerNormalization": _rows("layer_norm"), "RMSNormalization": _rows("rms_norm"),
    "SimplifiedLayerNormalization": _rows("rms_norm"), "GroupNormalization": _groups, "InstanceNormalization": _groups,
    "BatchNormalization": _batch_norm, "Softmax": _softmax("softmax"), "LogSoftmax": _softmax("log_softmax"),
    "MaxPool": _pool("max"), "AveragePool": _pool("average"),
    "GlobalMaxPool": _global_pool("max"), "GlobalAveragePool": _global_pool("average"),
    "Gather": _gather, "Dropout": _dropout, "SoftmaxCrossEntropyLoss": _loss, "Split": _split,
    "Concat": _copy("cat"), "Expand": _spread, "Tile": _spread, "Resize": _spread, "Upsample": _spread,
    **dict.fromkeys(("ReduceMean", "ReduceSum", "ArgMax", "ArgMin", "ReduceSumSquare"), _reduction(keeps=False)),
    **dict.fromkeys(
        ("ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceLogSumExp"), _reduction(keeps=True)
    ),
    **dict.fromkeys(
        (
            "Slice", "Pad", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "DepthToSpace",
            "SpaceToDepth", "CumSum", "Trilu", "Cast",
        ),
        _copy("copy"),
    ),
}  # fmt: skip

ELEMENTWISE = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Sum": "add", "Relu": "relu", "Gelu": "gelu",
    "Sigmoid": "sigmoid", "Tanh": "tanh", "Exp": "exp", "Sqrt": "sqrt", "Reciprocal": "reciprocal", "Neg": "neg",
    "LeakyRelu": "leaky_relu", "Elu": "elu", "Pow": "pow", "Swish": "silu", "Floor": "floor", "Ceil": "ceil",
    "Round": "round", "Sign": "sign",
    **{
        name: name.lower()
        for name in (
            "Erf", "Log", "Abs", "Clip", "HardSigmoid", "HardSwish", "Mish", "PRelu", "Selu", "Celu", "Softplus",
            "Softsign", "ThresholdedRelu", "Where", "Max", "Min", "Mean", "Mod", "Cos", "Sin", "And", "Or", "Not",
            "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "IsNaN", "IsInf",
        )
    },
}  # fmt: skip

VIEWS = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose"}
"""The same memory seen in another shape; a shape that a transposed tensor cannot be seen in takes a copy."""

ONCE = {"Shape", "Size", "Constant", "ConstantOfShape", "Range", "EyeLike"}
"""Made before the first step."""
