"""What is to be synchronised: gradients with their sizes, when each exists, and which layer waits for each.

Time 0 is the start of the backward pass. Layers stand in the order in which the forward pass runs them on the one
stream of the GPU; the backward pass runs them from the last to the first. A tensor belongs to the first layer that
reads it: its gradient is complete when that layer's backward pass ends, and that layer's forward pass in the next step
waits for it. A step ends with that forward pass, so that the iteration counted here goes from one backward pass to the
next: what is computed is the same as from forward to forward, and the exchange lies in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ropewalk.arrays import Floats, Ints
from ropewalk.device.pricer import pricer
from ropewalk.errors import Findings, WorkloadError
from ropewalk.strategy.prices import KeptPrices, Prices, pace_of
from ropewalk.workload.opaque import Measured
from ropewalk.workload.operator import Operator
from ropewalk.workload.workload import Workload

MEASURED_BYTES = 4.0
"""Bytes of an element where a profile of float32 tensors is all that is known."""


@dataclass(frozen=True, eq=False)
class Tensors:
    """Gradients of one model on one worker, in model order: the tensor that the forward pass needs first comes first.

    >>> tensors = from_layers([3, 6, 3], backward_s=[2, 2, 2], forward_s=[2, 2, 2])
    >>> tensors.ready_s.tolist(), tensors.tail_s.tolist()
    ([6.0, 4.0, 2.0], [6.0, 4.0, 2.0])
    """

    model: str
    names: tuple[str, ...]
    """A name for every tensor."""
    size_bytes: Floats
    """Bytes of every gradient."""
    layer: Ints
    """The layer that every tensor belongs to; never falls from one tensor to the next."""
    ready_s: Floats
    """Seconds from the start of the backward pass until every gradient exists."""
    forward_s: Floats
    """Seconds of the forward pass of every layer, the update of its own parameters included."""
    backward_s: Floats
    """Seconds of the backward pass of every layer."""
    layer_names: tuple[str, ...]
    inputs: tuple[tuple[int, ...], ...]
    """The earlier layers that every layer reads; a chain where each reads the one before."""
    source: str = ""
    """Where sizes and times come from."""
    update_s: Floats = field(default_factory=lambda: np.zeros(0))
    """What of `forward_s` is the update, by layer; nothing unless given. A GPU may do it earlier, while it waits."""

    def __post_init__(self) -> None:
        findings = Findings(WorkloadError, f"tensors of {self.model}")
        layers = len(self.layer_names)
        if not len(self.update_s):
            object.__setattr__(self, "update_s", np.zeros(layers))
        if not self.names:
            findings.add("there is nothing to synchronise: give at least one tensor")
        for label, wanted in (("size_bytes", len(self.names)), ("layer", len(self.names)), ("ready_s", len(self.names)),
                              ("forward_s", layers), ("backward_s", layers)):  # fmt: skip
            if getattr(self, label).shape != (wanted,):
                findings.add(f"{label} has {getattr(self, label).size} entries: give {wanted}")
        if len(self.inputs) != layers:
            findings.add(f"inputs has {len(self.inputs)} entries: give {layers}, one per layer")
        findings.raise_if_any()
        for label in ("size_bytes", "ready_s", "forward_s", "backward_s"):
            values = getattr(self, label)
            if not (np.isfinite(values).all() and (values >= 0).all()):
                findings.add(f"{label} holds a number that is negative or not finite: give 0 or more")
        if (self.layer < 0).any() or (self.layer >= layers).any():
            findings.add(f"a tensor belongs to a layer that does not exist: give numbers 0 to {layers - 1}")
        if (np.diff(self.layer) < 0).any():
            findings.add("tensors are not in model order: list them by the layer that reads them first")
        if any(not 0 <= read < number for number, reads in enumerate(self.inputs) for read in reads):
            findings.add("a layer reads a later layer or itself: list layers after those they read")
        findings.raise_if_any()
        for label in ("size_bytes", "layer", "ready_s", "forward_s", "backward_s"):
            getattr(self, label).setflags(write=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def layers(self) -> int:
        return len(self.layer_names)

    @property
    def total_bytes(self) -> float:
        return float(self.size_bytes.sum())

    @property
    def backward_end_s(self) -> float:
        """When the GPU is done with the backward pass."""
        return float(self.backward_s.sum())

    @property
    def compute_s(self) -> float:
        """A step in which nothing had to be synchronised."""
        return self.backward_end_s + float(self.forward_s.sum())

    @cached_property
    def tail_s(self) -> Floats:
        """Seconds of computation from the start of each tensor's layer to the end of the step, on the one stream."""
        rest = np.cumsum(self.forward_s[::-1])[::-1]
        return np.asarray(rest[self.layer], np.float64)

    @cached_property
    def in_ready_order(self) -> Ints:
        """Tensors as a framework without a scheduler sends them: by ready time, of equals the last one first."""
        return np.lexsort((-np.arange(len(self)), self.ready_s)).astype(np.int64)

    @property
    def is_chain(self) -> bool:
        """Does every layer read only the one before it?"""
        return all(reads == ((number - 1,) if number else ()) for number, reads in enumerate(self.inputs))

    def forward_start(self, available_s: ArrayLike, *, barrier: bool = False) -> Floats:
        """When every layer starts in the next step if its tensors are synchronised at these times.

        With a barrier no layer starts before all tensors are there.
        """
        available = np.asarray(available_s, np.float64)
        wanted = np.full(self.layers, self.backward_end_s)
        if barrier:
            wanted = np.maximum(wanted, available.max())
        else:
            np.maximum.at(wanted, self.layer, available)
        starts = np.empty(self.layers)
        free = 0.0
        for number in range(self.layers):
            starts[number] = max(free, wanted[number])
            free = starts[number] + self.forward_s[number]
        return starts

    def step_s(self, available_s: ArrayLike, *, barrier: bool = False) -> float:
        """When the next forward pass ends if tensors are synchronised at these times.

        >>> from_layers([3, 6, 3], backward_s=[2, 2, 2], forward_s=[2, 2, 2]).step_s([14, 11, 5])
        20.0
        """
        return float(self.forward_start(available_s, barrier=barrier)[-1] + self.forward_s[-1])

    def scaled(self, factor: float) -> Tensors:
        """The same model on a GPU that needs `factor` times as long."""
        return replace(
            self, ready_s=self.ready_s * factor, forward_s=self.forward_s * factor,
            backward_s=self.backward_s * factor, update_s=self.update_s * factor,
        )  # fmt: skip


def from_layers(
    size_bytes: ArrayLike,
    *,
    backward_s: ArrayLike,
    forward_s: ArrayLike,
    layer: ArrayLike | None = None,
    ready_s: ArrayLike | None = None,
    names: tuple[str, ...] = (),
    layer_names: tuple[str, ...] = (),
    inputs: tuple[tuple[int, ...], ...] | None = None,
    model: str = "model",
    source: str = "given",
    update_s: ArrayLike = (),
) -> Tensors:
    """Tensors from plain numbers: one a layer unless `layer` says where each belongs.

    Gradients exist when the backward pass of their layer ends, unless `ready_s` says when they were seen.
    """
    sizes, backward, forward = (np.array(values, np.float64) for values in (size_bytes, backward_s, forward_s))
    owner = np.arange(len(sizes)) if layer is None else np.array(layer, np.int64)
    if ready_s is None:
        ends = np.cumsum(backward[::-1])[::-1]
        if owner.size and (owner.min() < 0 or owner.max() >= len(ends)):
            raise WorkloadError(
                f"tensors of {model}: {len(sizes)} tensors belong to layers {owner.min()} to {owner.max()}, but "
                f"backward_s has {len(ends)} layers: give a time for each layer, or say in `layer` where tensors belong"
            )
        ready_s = ends[owner]
    return Tensors(
        model,
        names or tuple(f"tensor {number}" for number in range(len(sizes))),
        sizes,
        owner.astype(np.int64),
        np.array(ready_s, np.float64),
        forward,
        backward,
        layer_names or tuple(f"layer {number}" for number in range(len(forward))),
        tuple((number - 1,) if number else () for number in range(len(forward))) if inputs is None else inputs,
        source,
        np.array(update_s, np.float64),
    )


def tensors_of(
    workload: Workload,
    prices: Prices | None = None,
    *,
    gradient_bytes: float | None = None,
    optimiser: str = "none",
    whole_layers: bool = False,
) -> Tensors:
    """The gradients of a workload, operator by operator: one tensor for each operator that has parameters.

    A layer is an operator with parameters and what follows it up to the next one; `whole_layers` takes those of the
    workload, as a lowered step does. Without `prices` work is priced as on an H200 in bf16. Gradients have as many
    bytes an element as the model trains in, unless `gradient_bytes` says so. The update by `optimiser` is part of the
    forward pass that waits for it, shared out over the layers by their parameters.
    """
    prices = prices or pricer(precision_name="fp32" if _measured(workload) else "bf16")
    listed = KeptPrices(prices)
    runs = [[layer.operators] if whole_layers else _runs(layer.operators) for layer in workload.layers]
    operators = tuple(op for layer in workload.layers for op in layer.operators)
    every = sum(map(_trained, operators)), sum(op.parameter_tensors() for op in operators)
    work = listed.forward(operators) + listed.backward(operators) + listed.update(*every, optimiser)
    pace = pace_of(listed, work)
    element_bytes = gradient_bytes or (MEASURED_BYTES if _measured(workload) else listed.element_bytes)
    ends = np.cumsum([len(parts) for parts in runs]) - 1  # the last run of each layer of the workload
    parts = [part for of_layer in runs for part in of_layer]
    names, inputs = [], []
    for number, (layer, of_layer) in enumerate(zip(workload.layers, runs, strict=True)):
        first = int(ends[number]) - len(of_layer) + 1
        inputs += [tuple(int(ends[read]) for read in layer.inputs), *((first + at,) for at in range(len(of_layer) - 1))]
        names += [layer.name if len(of_layer) == 1 else f"{layer.name}.{at}" for at in range(len(of_layer))]
    parameters = np.array([sum(map(_trained, part)) for part in parts], np.float64)
    owner = np.flatnonzero(parameters > 0)
    updates = pace.update(*every, optimiser) * parameters / max(1.0, float(parameters.sum()))
    return from_layers(
        parameters[owner] * element_bytes,
        backward_s=[pace.backward(part) for part in parts],
        forward_s=np.array([pace.forward(part) for part in parts]) + updates,
        layer=owner,
        names=tuple(names[number] for number in owner),
        layer_names=tuple(names),
        inputs=tuple(inputs),
        model=workload.name,
        source=getattr(prices, "source", workload.source),
        update_s=updates,
    )


def _trained(operator: Operator) -> int:
    """Parameters that have gradients."""
    return operator.parameters() - operator.frozen_parameters()


def _measured(workload: Workload) -> bool:
    return all(isinstance(op, Measured) for layer in workload.layers for op in layer.operators)


def _runs(operators: tuple[Operator, ...]) -> list[tuple[Operator, ...]]:
    """Operators cut before each one that has parameters; what comes before the first such stays with it.

    In the backward pass what comes before would only run once the gradient exists; keeping it apart would make layers
    without tensors of what are mostly casts and reshapes.
    """
    starts = [at for at, op in enumerate(operators) if _trained(op)]
    cuts = [0, *starts[1:], len(operators)]
    return [operators[first:last] for first, last in pairwise(cuts)] if operators else [()]
