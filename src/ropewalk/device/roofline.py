"""What a kernel costs at best: arithmetic or memory, whichever takes longer, in whole waves of tiles.

A matrix product is cut into tiles, and the multiprocessors work on one tile each; the last wave takes as long as a full
one however few tiles are left (quantisation). Where there are too few tiles, the inner dimension is cut as well, and
the partial results are added. The best of the usual tilings counts, as libraries choose it by like reasoning.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from ropewalk.device.device import Device, Precision
from ropewalk.workload.kernel import ATTENTION_TILE, Kernel, convolved, windowed_span

TILES = (
    (256, 128, 1.0),
    (128, 256, 1.0),
    (192, 128, 0.98),
    (128, 128, 0.95),
    (64, 256, 0.9),
    (64, 128, 0.8),
    (64, 64, 0.6),
)
"""Rows and columns of a tile, and the part of the best rate that tiles of this size reach."""
SPLITS = (1, 2, 4, 8, 16)
LEAST_INNER = 512
"""The inner dimension is not cut into shorter pieces than this."""


def roofline(kernel: Kernel, device: Device, precision: Precision) -> float:
    """Seconds of a kernel on a device if nothing but quantisation holds it back."""
    return device.launch_s + max(_arithmetic(kernel, device, precision), _moving(kernel, device, precision))


def is_limited_by_memory(kernel: Kernel, device: Device, precision: Precision) -> bool:
    """Does moving its numbers take longer than its arithmetic?"""
    return _moving(kernel, device, precision) > _arithmetic(kernel, device, precision)


def _moving(kernel: Kernel, device: Device, precision: Precision) -> float:
    return kernel.moved_bytes(precision.element_bytes) / (device.memory_bandwidth * device.streaming)


def _arithmetic(kernel: Kernel, device: Device, precision: Precision) -> float:
    return _ARITHMETIC.get(kernel.kind, _none)(kernel, device, precision)


def _none(kernel: Kernel, device: Device, precision: Precision) -> float:
    return 0.0


def _matmul(kernel: Kernel, device: Device, precision: Precision) -> float:
    count, rows, columns, inner = kernel.dims
    return _tiled(count, rows, columns, inner, device, precision)


def _grouped(kernel: Kernel, device: Device, precision: Precision) -> float:
    groups, rows, columns, inner = kernel.dims
    if kernel.form == "weight_grad":
        return _tiled(groups, inner, columns, ceil(rows / groups), device, precision)
    return _tiled(groups, ceil(rows / groups), columns, inner, device, precision)


def _convolution(kernel: Kernel, device: Device, precision: Precision) -> float:
    """A convolution as the matrix product it is computed by (implicit GEMM)."""
    batch, channels, height, width, outputs, k0, k1, s0, s1, p0, p1, groups = kernel.dims
    positions = batch * convolved(height, k0, s0, p0) * convolved(width, k1, s1, p1)
    into, out = channels // groups * k0 * k1, outputs // groups
    shape = {
        "forward": (positions, out, into),
        "input_grad": (batch * height * width, channels // groups, out * k0 * k1 // (s0 * s1)),
        "weight_grad": (out, into, positions),
    }[kernel.form]
    return _tiled(groups, shape[0], shape[1], max(shape[2], 1), device, precision)


def _attention(kernel: Kernel, device: Device, precision: Precision) -> float:
    """All pairs of a tile are computed, also those that lie outside of a window which ends in it."""
    span = windowed_span(kernel)
    tiles = span / (span - ATTENTION_TILE) if span else 1.0
    return tiles * kernel.flops / (device.peak(precision) * device.achievable)


def _recurrent(kernel: Kernel, device: Device, precision: Precision) -> float:
    """Step by step: no step starts before the one before it."""
    steps, batch, inputs, hidden = kernel.dims
    passes = 1 if kernel.form == "forward" else 2
    each = _tiled(1, batch, 4 * hidden, inputs + hidden, device, precision)
    return steps * passes * (each + device.launch_s)


def _tiled(count: int, rows: int, columns: int, inner: int, device: Device, precision: Precision) -> float:
    rate = device.peak(precision) * device.achievable / precision.slower
    memory = device.memory_bandwidth * device.streaming
    best = float("inf")
    for cuts in SPLITS:
        if cuts > 1 and inner / cuts < LEAST_INNER:
            break
        added = 0.0 if cuts == 1 else device.launch_s + (cuts + 1) * 4.0 * count * rows * columns / memory
        for tall, wide, part in TILES:
            tiles = count * cuts * ceil(rows / tall) * ceil(columns / wide)
            waves = ceil(tiles / device.multiprocessors)
            flops = waves * device.multiprocessors * tall * wide * 2.0 * ceil(inner / cuts)
            best = min(best, flops / (rate * part) + added)
    return best


_ARITHMETIC: dict[str, Callable[[Kernel, Device, Precision], float]] = {
    "matmul": _matmul,
    "grouped_matmul": _grouped,
    "convolution": _convolution,
    "attention": _attention,
    "recurrent": _recurrent,
}
"""How long the arithmetic takes, by kind of kernel; the others are limited by memory alone."""
