"""The step of a plain data-parallel model, written down from sizes and seconds alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropewalk.task.passes.gradients import UPDATE, Gradients, gradients_in
from ropewalk.task.step import Act, StepSketch


def data_parallel(
    ranks: int,
    size_bytes: Sequence[float],
    forward_s: Sequence[float],
    backward_s: Sequence[float],
    *,
    layer: Sequence[int] | None = None,
    names: Sequence[str] = (),
    layer_names: Sequence[str] = (),
    update_s: float = 0.0,
    ring: Sequence[int] = (),
) -> Gradients:
    """A model of layers in a row on ranks that do all the same: forward, backward, sums as gradients appear, update.

    There is a tensor for every layer unless `layer` says where each belongs; of those of one layer the last one goes
    first. `ring` is the order in which a ring goes round the ranks, from the first to the last unless given.
    """
    owner = list(range(len(size_bytes))) if layer is None else list(layer)
    around = list(ring) or list(range(ranks))
    called = list(layer_names) or [f"layer {number}" for number in range(len(forward_s))]
    sketch = StepSketch(ranks)
    done: dict[int, int] = {}

    def compute(rank: int, seconds: float, label: str, after: Sequence[int] = ()) -> None:
        before = [done[rank]] if rank in done else []
        done[rank] = sketch.compute(rank, seconds, after=[*before, *after], label=label)

    begins: list[tuple[int, int]] = []
    for number, seconds in enumerate(forward_s):
        for rank in range(ranks):
            compute(rank, seconds, f"{called[number]} forward")
            begins += [(tensor, done[rank]) for tensor, home in enumerate(owner) if home == number]
    summed: dict[int, int] = {}
    sums: list[int] = []
    for number in reversed(range(len(backward_s))):
        for rank in range(ranks):
            compute(rank, backward_s[number], f"{called[number]} backward")
        for one in reversed([at for at, home in enumerate(owner) if home == number]):
            after = [*done.values(), *sums[-1:]]
            sums.append(sketch.collective(Act.ALL_REDUCE, around, size_bytes[one], after=after, label="gradients"))
            summed[sums[-1]] = one
    for rank in range(ranks):
        compute(rank, update_s, UPDATE, sums[-1:])
    step = sketch.step()
    by_operation = np.array([summed.get(at, -1) for at in range(step.operations)], np.int64)
    layers = [called[home] for home in owner]
    called_tensors = list(names) or [f"tensor {at}" for at in range(len(size_bytes))]
    return gradients_in(step, by_operation, called_tensors, layers, begins=begins)


def two_ranks(size_bytes: Sequence[float]) -> Gradients:
    """Two ranks, a tensor for every layer, and passes of a second each: for examples that are followed by hand."""
    return data_parallel(2, size_bytes, [1.0] * len(size_bytes), [1.0] * len(size_bytes))
