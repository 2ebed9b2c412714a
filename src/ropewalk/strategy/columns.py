"""A layer shared out by its weights: which layers can be, and what is left of one on each of several servers.

Attention, feed-forward and expert layers say themselves how Megatron-LM splits them: by columns, then by rows, with a
sum behind (`Layer.split`). A layer without such regions can be cut by its outputs where one operator has its weights
and every output needs all inputs but no other output: a linear layer, a convolution, a table, with whatever follows
element by element or channel by channel.
"""

from __future__ import annotations

from dataclasses import replace

from ropewalk.errors import StrategyError
from ropewalk.workload.adapted import bare
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Dropout, Pointwise
from ropewalk.workload.exchange import Meeting
from ropewalk.workload.image import BatchNorm, Convolution, Pool
from ropewalk.workload.lookup import SparseTable
from ropewalk.workload.operator import Operator, Role, Split
from ropewalk.workload.workload import Layer

WEIGHED: dict[type[Operator], str] = {Linear: "outputs", Convolution: "outputs", SparseTable: "width"}
"""Operators with weights that can be cut, and their number of outputs."""
FOLLOWING: dict[type[Operator], str] = {
    Pointwise: "elements",
    Dropout: "elements",
    Pool: "channels",
    BatchNorm: "channels",
}
"""Operators that may follow one, and what is divided."""


def outputs_of(layer: Layer) -> int | None:
    """Outputs among which a layer can be cut, or None where it cannot."""
    if not layer.operators or type(layer.operators[0]) not in WEIGHED:
        return None
    if any(type(operator) not in FOLLOWING for operator in layer.operators[1:]):
        return None
    first = layer.operators[0]
    return int(getattr(first, WEIGHED[type(first)]))


def can_be_cut(layer: Layer, ways: int) -> bool:
    """Does the layer fall into this many equal parts?"""
    outputs = outputs_of(layer)
    return outputs is not None and outputs % ways == 0


def can_be_split(layer: Layer, ways: int, samples: int) -> bool:
    """Does Megatron split this layer, sized for so many samples, over so many ranks?"""
    if not (layer.meets(Meeting.ENTER) or layer.meets(Meeting.LEAVE)):
        return False
    for operator in map(bare, layer.operators):
        if isinstance(operator, FusedAttention):
            heads, shared = operator.heads, operator.kv_heads
        elif isinstance(operator, Product) and operator.role is Role.INSIDE:
            heads = shared = operator.count // samples
        else:
            continue
        if heads % ways or (shared % ways and ways % shared):
            return False
    return True


def split_by_tensor(layer: Layer, ways: int, samples: int) -> Layer:
    """What one of `ways` servers does of a layer, sized for so many samples, as Megatron splits it."""
    if not can_be_split(layer, ways, samples):
        raise StrategyError(
            f"layer {layer.name} cannot be split over {ways} tensor ranks: split it by samples, or give a degree that "
            "divides its attention heads"
        )
    return layer.split(Split(tensor=ways))


def cut(layer: Layer, ways: int) -> tuple[Operator, ...]:
    """What one of `ways` servers does of the layer.

    >>> cut(Layer("dense", (Linear(8, 16, 32), Pointwise(8 * 32)), 8 * 32), 4)[0].outputs
    8
    """
    if not can_be_cut(layer, ways):
        raise StrategyError(
            f"layer {layer.name} cannot be cut into {ways} parts by its outputs: split it by samples, or give a degree "
            "that divides the outputs of its one linear layer, convolution or table"
        )
    divided = {**WEIGHED, **FOLLOWING}
    return tuple(
        replace(op, **{divided[type(op)]: getattr(op, divided[type(op)]) // ways}) for op in layer.operators
    )  # fmt: skip
