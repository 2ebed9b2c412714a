"""A model as a planner sees it: states in a row, what each costs, and what crosses a cut behind each.

A state is the smallest thing that a stage holds. For a chain it is a layer. For any other graph
`profile_of` runs layers in the order of the workload and counts what is still needed behind a cut, each tensor once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ropewalk.arrays import Floats
from ropewalk.device.pricer import Pricer, pricer
from ropewalk.errors import Findings, WorkloadError
from ropewalk.workload.opaque import Measured
from ropewalk.workload.workload import Workload

MEASURED_BYTES = 4.0
"""Bytes of an element where nothing but a profile of float32 tensors is known."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Costs of states 0 … S-1 for `batch` samples.

    The arrays with S+1 entries are sums over the states before: those of states first..last, both included, are
    `array[last + 1] - array[first]`.

    >>> measured = from_states("tiny", 8, forward_s=[1, 2, 3], backward_s=[2, 4, 6], parameter_bytes=[10, 0, 5])
    >>> measured.forward(1, 2), measured.parameters(0, 2)
    (5.0, 15.0)
    """

    name: str
    batch: int
    """Samples for which times and activations are given."""
    names: tuple[str, ...]
    """A name for every state."""
    forward_s: Floats
    """S+1 sums: seconds of the forward pass."""
    backward_s: Floats
    """S+1 sums: seconds of the backward pass."""
    parameter_bytes: Floats
    """S+1 sums: bytes of weights."""
    kept_bytes: Floats
    """S+1 sums: bytes kept from the forward to the backward pass."""
    crossing_bytes: Floats
    """S numbers: bytes of activations that cross a cut behind each state."""
    source: str = ""

    def __post_init__(self) -> None:
        findings = Findings(WorkloadError, f"profile {self.name}")
        if self.states < 1:
            findings.add("it has no states: give at least one layer")
        if self.batch < 1:
            findings.add(f"it was measured with {self.batch} samples: give 1 or more")
        for label in SUMS:
            sums = getattr(self, label)
            if sums.shape != (self.states + 1,):
                findings.add(f"{label} has {sums.size} sums for {self.states} states: give {self.states + 1}")
        if self.crossing_bytes.shape != (self.states,):
            findings.add(f"crossing_bytes has {self.crossing_bytes.size} entries: give {self.states}, one per state")
        if not all(np.isfinite(getattr(self, label)).all() for label in (*SUMS, "crossing_bytes")):
            findings.add("a time or a size is not finite: measure it again")
        findings.raise_if_any()
        for label in (*SUMS, "crossing_bytes"):
            getattr(self, label).setflags(write=False)

    @property
    def states(self) -> int:
        return len(self.names)

    def forward(self, first: int, last: int) -> float:
        """Seconds in which states first..last, both included, pass `batch` samples forward."""
        return float(self.forward_s[last + 1] - self.forward_s[first])

    def backward(self, first: int, last: int) -> float:
        """Seconds in which states first..last, both included, pass `batch` samples backward."""
        return float(self.backward_s[last + 1] - self.backward_s[first])

    def parameters(self, first: int, last: int) -> float:
        """Bytes of the weights of states first..last, both included."""
        return float(self.parameter_bytes[last + 1] - self.parameter_bytes[first])

    def kept(self, first: int, last: int) -> float:
        """Bytes that states first..last keep for the backward pass of `batch` samples."""
        return float(self.kept_bytes[last + 1] - self.kept_bytes[first])

    def handed_on(self, last: int) -> float:
        """Bytes of activations of `batch` samples that cross the cut behind state `last`; nothing behind the last."""
        return 0.0 if last >= self.states - 1 else float(self.crossing_bytes[last])

    @property
    def seconds(self) -> float:
        """Both passes of the whole model over `batch` samples."""
        return self.forward(0, self.states - 1) + self.backward(0, self.states - 1)

    def at_batch(self, batch: int) -> Profile:
        """Times and activations in proportion to the samples, weights as they are.

        A simple assumption, generous to small micro-batches. Where layers can be priced for another micro-batch, price
        `workload.at_batch(batch)` instead.
        """
        if batch < 1:
            raise WorkloadError(f"profile {self.name}: a micro-batch of {batch} samples: give 1 or more")
        ratio = batch / self.batch
        return replace(
            self, batch=batch, forward_s=self.forward_s * ratio, backward_s=self.backward_s * ratio,
            kept_bytes=self.kept_bytes * ratio, crossing_bytes=self.crossing_bytes * ratio,
        )  # fmt: skip


SUMS = ("forward_s", "backward_s", "parameter_bytes", "kept_bytes")


def from_states(
    name: str,
    batch: int,
    *,
    forward_s: ArrayLike,
    backward_s: ArrayLike,
    parameter_bytes: ArrayLike,
    crossing_bytes: ArrayLike | None = None,
    kept_bytes: ArrayLike | None = None,
    names: tuple[str, ...] = (),
    source: str = "",
) -> Profile:
    """The profile of states whose costs are given one by one, the most direct way to write one down."""
    forward = np.asarray(forward_s, np.float64)
    nothing = np.zeros_like(forward)
    return Profile(
        name,
        batch,
        names or tuple(f"state {number}" for number in range(len(forward))),
        _sums(forward),
        _sums(backward_s),
        _sums(parameter_bytes),
        _sums(nothing if kept_bytes is None else kept_bytes),
        nothing if crossing_bytes is None else np.array(crossing_bytes, np.float64),
        source,
    )


def profile_of(workload: Workload, prices: Pricer | None = None) -> Profile:
    """The profile of a workload, a state for each of its layers in their order.

    Layers that were measured keep their times; others are priced, without `prices` as on an H200 in bf16.
    """
    measured = is_measured(workload)
    if prices is None:
        prices = pricer(precision_name="fp32" if measured else "bf16")
    element_bytes = bytes_of_elements(workload, prices)
    layers = workload.layers
    return from_states(
        workload.name,
        workload.batch,
        forward_s=[prices.forward(layer.operators) for layer in layers],
        backward_s=[prices.backward(layer.operators) for layer in layers],
        parameter_bytes=[layer.trained_parameters() * element_bytes for layer in layers],
        kept_bytes=[layer.saved_bytes(element_bytes) for layer in layers],
        crossing_bytes=_crossing(workload) * element_bytes,
        names=tuple(layer.name for layer in layers),
        source=f"{workload.source}, as measured" if measured else prices.source,
    )


def is_measured(workload: Workload) -> bool:
    """Is every layer a measured one, so that no device has to be asked?"""
    return all(isinstance(op, Measured) for layer in workload.layers for op in layer.operators)


def bytes_of_elements(workload: Workload, prices: Pricer | None) -> float:
    """Bytes of a number of the model: float32 in measured profiles, else as it is trained."""
    if is_measured(workload):
        return MEASURED_BYTES
    return (prices or pricer()).precision.element_bytes


def _crossing(workload: Workload) -> Floats:
    """Elements still needed behind each layer: outputs of earlier layers that a later one reads, each counted once."""
    layers = len(workload.layers)
    last_reader = list(range(layers))
    for number, layer in enumerate(workload.layers):
        for read in layer.inputs:
            last_reader[read] = max(last_reader[read], number)
    change = np.zeros(layers + 1)
    for number, layer in enumerate(workload.layers):
        change[number] += layer.output_elements
        change[last_reader[number]] -= layer.output_elements
    return np.cumsum(change)[:layers]


def _sums(values: ArrayLike) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.asarray(values, np.float64))])
