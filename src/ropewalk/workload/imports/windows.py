"""Convolutions and pools from shapes, in one, two or three dimensions.

The operators know images, kernels, strides and paddings that are the same on both sides. Where a model has something
else (dilation, uneven padding, a third dimension), the image is sized so that the window stops as often as it does in
the model: results, parameters and arithmetic are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.image import Convolution, Pool
from ropewalk.workload.imports.graph import UsedOperator, Value
from ropewalk.workload.kernel import convolved
from ropewalk.workload.operator import Role
from ropewalk.workload.reduction import Reduction
from ropewalk.workload.upsampling import TransposedConvolution

Sides = Sequence[int]


def convolution(
    x: Value, weight: Value, bias: Value | None, out: Value, stride: Sides, padding: Sides, dilation: Sides,
    groups: int,
) -> list[UsedOperator]:  # fmt: skip
    """A convolution; `padding` is what is added on both ends of a side together, halved."""
    outputs, kernel = weight.shape[0], weight.shape[2:]
    operator = _image(x.shape, out.shape, kernel, stride, padding, dilation, outputs, groups)
    return [UsedOperator(replace(operator, bias=bias is not None, first=not x.gradient), (x,))]


def transposed(
    x: Value, weight: Value, bias: Value | None, out: Value, stride: Sides, padding: Sides, dilation: Sides,
    groups: int,
) -> list[UsedOperator]:  # fmt: skip
    """A transposed convolution: the convolution that leads from its result to its input, run the other way."""
    mirror = _image(out.shape, x.shape, weight.shape[2:], stride, padding, dilation, weight.shape[0], groups)
    return [UsedOperator(TransposedConvolution(mirror, bias is not None, first=not x.gradient), (x,))]


def _image(
    image: Sequence[int], result: Sequence[int], kernel: Sides, stride: Sides, padding: Sides, dilation: Sides,
    outputs: int, groups: int,
) -> Convolution:  # fmt: skip
    dims = len(kernel)
    batch = image[0] if len(image) == dims + 2 else 1
    channels = image[-dims - 1]
    sides = list(zip(image[-dims:], result[-dims:], kernel, stride, padding, dilation, strict=True))
    if dims == 1:
        sides = [(1, 1, 1, 1, 0, 1), *sides]
    if dims == 3:  # every plane of the result is an image of its own, which sees as many planes as the kernel is deep
        _, planes, deep, *_ = sides.pop(0)
        batch, channels = batch * planes, channels * deep
    (height, above), (width, beside) = (_fitting(*side) for side in sides)
    (_, _, k0, s0, *_), (_, _, k1, s1, *_) = sides
    return Convolution(batch, channels, height, width, outputs, (k0, k1), (s0, s1), (above, beside), groups)


def _fitting(size: int, result: int, kernel: int, stride: int, padding: int, dilation: int) -> tuple[int, int]:
    """Length and padding of a side on which a plain window has exactly `result` stops.

    >>> _fitting(224, 112, 7, 2, 3, 1), _fitting(32, 32, 3, 1, 2, 2), _fitting(10, 10, 4, 1, 1, 1)
    ((224, 3), (32, 1), (13, 0))
    """
    narrower = padding - (dilation - 1) * (kernel - 1) // 2
    for tried in (padding, narrower):
        if tried >= 0 and convolved(size, kernel, stride, tried) == result:
            return size, tried
    return (result - 1) * stride + kernel, 0


def pool(form: str, x: Value, out: Value, kernel: Sides, stride: Sides, padding: Sides) -> list[UsedOperator]:
    """A window that slides; one that is no square is taken as one pass over what it reads and writes."""
    dims = len(kernel)
    kept = (x,) if form == "max" else ()
    if dims == 2 and len({*kernel}) == len({*stride}) == len({*padding}) == 1:
        batch = x.shape[0] if len(x.shape) == dims + 2 else 1
        size, step, edge = kernel[0], stride[0], padding[0]
        sides = [
            _fitting(side, result, size, step, edge, 1)
            for side, result in zip(x.shape[-2:], out.shape[-2:], strict=True)
        ]
        (height, above), (width, beside) = sides
        if above == beside:
            return [UsedOperator(Pool(form, batch, x.shape[-3], height, width, size, step, above), kept)]
    ratio = max(1, round(x.elements / out.elements))
    call = "max_pool" if form == "max" else "average_pool"
    passed = Pointwise(out.elements, reads=ratio, backward_reads=ratio, saved=0.0, role=Role.WHOLE, call=call)
    return [UsedOperator(passed, kept)]


def adaptive_pool(form: str, x: Value, out: Value, dims: int) -> list[UsedOperator]:
    """A pool that is told its result instead of its window; down to one element it is a mean or an extreme."""
    sides, results = x.shape[-dims:], out.shape[-dims:]
    if x.elements == out.elements:
        return []
    if all(side == 1 for side in results) and len({*sides}) > 1:
        return [UsedOperator(Reduction(out.elements, x.elements // out.elements, saved=float(form == "max")))]
    step = [max(1, side // result) for side, result in zip(sides, results, strict=True)]
    window = [max(1, side - (result - 1) * by) for side, result, by in zip(sides, results, step, strict=True)]
    stride = [1 if result == 1 else by for result, by in zip(results, step, strict=True)]
    return pool(form, x, out, window, stride, [0] * dims)
