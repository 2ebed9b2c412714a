"""Views in an exported graph: which results share the memory of an argument, and what their gradients cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.imports import works
from ropewalk.workload.imports.graph import UsedOperator, Value


def is_view(node: Any) -> bool:
    """Does the result show the memory of the first tensor? Some operations, such as reshape, do so if they can."""
    returns = node.target._schema.returns
    if not any(one.alias_info is not None and not one.alias_info.is_write for one in returns):
        return False
    made = node.meta["val"]
    return isinstance(made, list | tuple) or _memory(made) == _memory(_first_tensor(node))


def is_swapped(tensor: Any) -> bool:
    """Do the last two dimensions lie in memory the other way round, as those of a transposed matrix do?"""
    strides = tensor.stride()
    return len(strides) >= 2 and strides[-1] > strides[-2] >= 1


def undone(shown: Value, outs: tuple[Value, ...]) -> list[UsedOperator]:
    """What the backward pass does for a view: a part is put among zeros, parts are put together again, and what was
    shown many times is summed."""
    whole, made = shown.elements, sum(out.elements for out in outs)
    if not outs[0].gradient or (len(outs) == 1 and made == whole):
        return []
    if made > whole:
        return works.spread([shown], outs[0])
    joined = Pointwise(made, passes=0, backward_form="cat", backward_reads=1, saved=0.0, role=works.WHOLE, call="cat")
    if len(outs) > 1:
        return [UsedOperator(joined)]
    zeros = Pointwise(whole, passes=0, backward_reads=0, saved=0.0, role=works.WHOLE, call="copy")
    return [UsedOperator(zeros), UsedOperator(replace(joined, backward_form="map", call="copy"))]


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _first_tensor(node: Any) -> Any:
    flat: list[Any] = []
    for argument in node.args:
        flat.extend(argument if isinstance(argument, list | tuple) else [argument])
    metas = [argument.meta.get("val") for argument in flat if hasattr(argument, "op")]
    return next(meta for meta in metas if hasattr(meta, "shape"))
