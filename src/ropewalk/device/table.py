"""Measured kernels, and what they say about kernels that were not measured.

A table holds seconds of many kernels. For another kernel of the same kind and form the *ratio* of time to roofline is
taken over from its nearest measured neighbours in the logarithms of its sizes, by a weighted line through them, held
within what they span. Where the kernel itself was measured, its ratio is the measured one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log2
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ropewalk.device.device import PRECISIONS, Device
from ropewalk.device.roofline import roofline
from ropewalk.documents import read_text
from ropewalk.documents.from_csv import table_rows
from ropewalk.documents.numbers import finite, whole
from ropewalk.errors import DeviceError
from ropewalk.workload.kernel import MASKED, Kernel, rebuilt, undropped, windowed_span

NEIGHBOURS = 12
CLOSE = 0.02
"""Squared distance (in doublings) below which neighbours count alike."""
SLOPE_DOUBT = 0.5
"""How strongly the line through the neighbours is held level."""
COLUMNS = ["precision", "kind", "form", "dims", "seconds"]
FACTS = "device"
"""The kind of lines that describe the device itself."""

DROPPED_AS = {"fp32": "tf32"}
"""Precisions whose dropout inside of attention is that of another: both read and write float32."""
MASKED_AS_SEEN = ("tf32", "fp32")
"""Precisions whose attention runs in the same kernels with a mask in memory as without one: PyTorch has one fused
kernel for float32, which adds the mask to its scores."""

Row = tuple[str, str, str, str, str]
"""A line of a table: precision, kind, form, sizes, seconds (or a value)."""


@dataclass(frozen=True)
class HostTimes:
    """Seconds that a call of the framework keeps the host busy."""

    forward: dict[str, float]
    backward: dict[str, float]


class CostTable:
    """Measurements of one device."""

    def __init__(self, device: Device | None, rows: Sequence[Row], origin: str) -> None:
        self.device = device or described([row for row in rows if row[1] == FACTS], origin)
        self.origin = origin
        self._rows: dict[tuple[str, str, str], list[tuple[tuple[int, ...], float]]] = defaultdict(list)
        self.hosts: dict[str, HostTimes] = defaultdict(lambda: HostTimes({}, {}))
        for precision, kind, form, dims, seconds in rows:
            if kind == FACTS:
                continue
            if kind == "host":
                forward, backward = (_quantity(part, f"host time of {form}") for part in seconds.split(";"))
                self.hosts[precision].forward[form] = forward
                self.hosts[precision].backward[form] = backward
            else:
                measured = _quantity(seconds, f"time of {kind} {form} {dims}", above_zero=True)
                self._rows[precision, kind, form].append((tuple(map(whole, dims.split())), measured))
        self._sets: dict[tuple[str, str, str], _Neighbourhood] = {}

    def ratio(self, kernel: Kernel, measured_as: str) -> float:
        """Time against roofline of this kernel, as its neighbours in the table have it.

        Attention with dropout takes as many times what it takes without as it does where both are known.
        """
        without = undropped(kernel)
        return self._own(kernel, measured_as) * (self.ratio(without, measured_as) if without else 1.0)

    def _own(self, kernel: Kernel, measured_as: str) -> float:
        """Time against roofline, or against that without dropout, as the neighbours of its own form have it."""
        key = (measured_as, kernel.kind, kernel.form)
        if key not in self._rows and measured_as in MASKED_AS_SEEN:
            key = (measured_as, kernel.kind, kernel.form.replace(MASKED, ""))
        if key not in self._rows and measured_as in DROPPED_AS and undropped(kernel):
            key = (DROPPED_AS[measured_as], *key[1:])
        if key not in self._sets:
            if key not in self._rows:
                raise DeviceError(
                    f"{self.origin} has no {measured_as} measurement of {kernel.kind} {kernel.form}: "
                    "measure it with `ropewalk profile`, or use another device"
                )
            try:
                self._sets[key] = self._neighbourhood(key)
            except (TypeError, ValueError, ArithmeticError):
                raise DeviceError(
                    f"{self.origin} has {kernel.kind} {kernel.form} with sizes that no such kernel has: "
                    "rewrite it with `ropewalk profile`"
                ) from None
        return self._sets[key].ratio(kernel)

    def _neighbourhood(self, key: tuple[str, str, str]) -> _Neighbourhood:
        precision, kind, form = key
        if any(min(dims, default=-1) < 0 for dims, _ in self._rows[key]):
            raise ValueError("sizes are whole numbers, 0 or more")
        kernels = [rebuilt(kind, form, dims) for dims, _ in self._rows[key]]
        others = [undropped(kernel) for kernel in kernels]
        best = [
            roofline(kernel, self.device, PRECISIONS[precision]) * (self.ratio(other, precision) if other else 1.0)
            for kernel, other in zip(kernels, others, strict=True)
        ]
        return _Neighbourhood(kernels, np.array([seconds for _, seconds in self._rows[key]]) / np.array(best))

    @cached_property
    def measurements(self) -> int:
        return sum(len(rows) for rows in self._rows.values())


class _Neighbourhood:
    """All measurements of one kind, form and precision."""

    def __init__(self, kernels: Sequence[Kernel], ratios: NDArray[np.float64]) -> None:
        self.log_ratio = np.log(ratios)
        self.place = np.array([_place(kernel) for kernel in kernels])

    def ratio(self, kernel: Kernel) -> float:
        away = self.place - np.array(_place(kernel))
        distance = (away * away).sum(axis=1)
        near = np.argsort(distance, kind="stable")[:NEIGHBOURS]
        if distance[near[0]] == 0:
            return float(np.exp(self.log_ratio[near[0]]))
        return float(np.exp(_level_at_origin(away[near], distance[near], self.log_ratio[near])))


def _level_at_origin(away: NDArray[np.float64], distance: NDArray[np.float64], value: NDArray[np.float64]) -> float:
    """The height at 0 of the line through weighted points, within the heights of the points."""
    weight = 1.0 / (distance + CLOSE)
    basis = np.column_stack([np.ones(len(away)), away])
    doubt = SLOPE_DOUBT * weight.mean() * np.eye(basis.shape[1])
    doubt[0, 0] = 0.0
    weighted = basis * weight[:, None]
    line = np.linalg.solve(basis.T @ weighted + doubt, weighted.T @ value)
    return float(np.clip(line[0], value.min(), value.max()))


def _place(kernel: Kernel) -> list[float]:
    """Where a kernel stands among its like: logarithms of its sizes, and steps of four doublings between manners."""
    return _PLACES.get(kernel.kind, _sizes)(kernel)


def _sizes(kernel: Kernel) -> list[float]:
    return [log2(max(size, 0.5)) for size in kernel.dims]


APART = 4.0


def _matmul_place(kernel: Kernel) -> list[float]:
    """Lengths along which memory is read in 16-byte pieces differ from odd ones, which need other kernels."""
    return [*_sizes(kernel), *(APART * _oddness(length) for length in _contiguous(kernel))]


def _contiguous(kernel: Kernel) -> tuple[int, int]:
    """Lengths along which the memory of a product is read."""
    _, rows, columns, inner = kernel.dims
    return (rows, columns) if kernel.form == "weight_grad" else (inner, columns)


def has_odd_width(kernel: Kernel) -> bool:
    """Is this a product along whose lengths memory cannot be read in 16-byte pieces?"""
    return kernel.kind == "matmul" and any(map(_oddness, _contiguous(kernel)))


def _oddness(length: int) -> float:
    return 0.0 if length % 8 == 0 else 0.5 if length % 2 == 0 else 1.0


def _convolution_place(kernel: Kernel) -> list[float]:
    batch, channels, height, width, outputs, k0, k1, s0, s1, _, _, groups = kernel.dims
    sizes = map(log2, (batch, channels // groups, height * width, outputs))
    manner = (1.5 * log2(ways) for ways in (k0 * k1, s0 * s1, groups))
    return [*sizes, *manner, APART * _oddness(channels)]


def _attention_place(kernel: Kernel) -> list[float]:
    """A window makes of a long sequence as much work as of many short ones that see all of themselves."""
    batch, heads, kv_heads, queries, keys, size, causal, *_ = kernel.dims
    if span := windowed_span(kernel):
        batch, queries, keys, causal = max(1, batch * queries // span), span, span, 0
    sizes = map(log2, (batch, heads, kv_heads, queries, keys, size))
    return [*sizes, APART * causal, APART * (heads != kv_heads), APART * _oddness(queries)]


def _pointwise_place(kernel: Kernel) -> list[float]:
    """A plain map is measured with 0 to 3 tensors read; other forms have their own number of them."""
    elements, reads, _ = kernel.dims
    return [log2(elements), APART * min(reads, 3) if kernel.form == "map" else 0.0]


_PLACES: dict[str, Callable[[Kernel], list[float]]] = {
    "matmul": _matmul_place,
    "convolution": _convolution_place,
    "attention": _attention_place,
    "pointwise": _pointwise_place,
}


def described(facts: Sequence[Row], origin: str) -> Device:
    """The device that a table says it was measured on."""
    values = {form: value for _, _, form, _, value in facts}
    sizes = {form: _quantity(value, form, above_zero=True) for form, value in values.items() if form not in WORDS}
    try:
        return Device(
            name=values["name"],
            title=values["title"],
            multiprocessors=int(sizes["multiprocessors"]),
            peak_flops={key.removeprefix("peak_"): sizes[key] for key in sizes if key.startswith("peak_")},
            achievable=1.0,
            memory_bandwidth=sizes["memory_bandwidth"],
            streaming=1.0,
            memory_bytes=sizes["memory_bytes"],
            cache_bytes=sizes["cache_bytes"],
            launch_s=sizes["launch_s"],
            host_factor=1.0,
            source=f"measured ({origin})",
            adding=sizes.get("adding"),
            host_adding=sizes.get("host_adding"),
        )
    except KeyError as missing:
        raise ValueError(f"it does not say the device's {missing.args[0]}") from None


WORDS = ("name", "title")
"""Facts about a device that are no numbers."""


def _quantity(text: str, what: str, *, above_zero: bool = False) -> float:
    """A number that makes sense: finite, and not below zero."""
    try:
        value = finite(text)
    except ValueError:
        value = -1.0
    if value < 0 or (above_zero and value == 0):
        raise ValueError(f"its {what} is {text!r}, which is impossible")
    return value


def read_table(path: Path, device: Device | None = None) -> CostTable:
    """A table from a file, plain or packed with gzip; without a device given, of the device it describes."""
    remedy = "write one with `ropewalk profile`"
    subject = f"cost table {path}"
    text = read_text(path, subject, DeviceError)
    rows = list(table_rows(text.splitlines(keepends=True), subject, DeviceError))
    if not rows or rows[0][1] != COLUMNS:
        raise DeviceError(f"{subject}: its first line is not {','.join(COLUMNS)}: {remedy}")
    odd = next((line for line, row in rows if len(row) != len(COLUMNS)), None)
    if odd is not None:
        raise DeviceError(f"{subject}: line {odd} does not have {len(COLUMNS)} columns: {remedy}")
    try:
        return CostTable(device, [(a, b, c, d, e) for _, (a, b, c, d, e) in rows[1:]], path.name)
    except ValueError as problem:
        raise DeviceError(f"{subject}: {problem}: {remedy}") from problem
