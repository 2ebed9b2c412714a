"""Several steps in a row, with a barrier between them or without: what overlaps from one step into the next is seen.

With a barrier a rank begins a step when it has updated all its parameters. Across the barrier (ByteScheduler, Peng et
al., SOSP 2019) the update is taken apart: a layer begins as soon as its own gradients are summed and its own parameters
updated, while the gradients of later layers are still on their way. A rank never begins a step before it has computed
all of the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.errors import GraphError
from ropewalk.task.passes.assembly import AddedOperation, StepDraft, ranks_of
from ropewalk.task.passes.gradients import UPDATE, Gradients, moved
from ropewalk.task.step import COMPUTE_STREAM, Act, Step

WHEN_IDLE = 1
"""Priority of the first update: passes go before it where both could run, and less urgent updates after it."""


def with_barrier(gradients: Gradients, steps: int) -> Gradients:
    """So many steps, each of which a rank begins when it is done with the one before."""
    ends = _last_operations(gradients.base)
    return _repeated(gradients, steps, ends, np.zeros(0, np.int64), lambda draft: [])


def cross_barrier(gradients: Gradients, steps: int) -> Gradients:
    """So many steps, in which a layer waits for nothing but its own tensors and their update.

    The update of a rank is shared out over its tensors by their bytes. Each part runs when its gradient is summed and
    the GPU has nothing else to do: between the passes, while it waits for the network, or right before its layer.
    """
    base, updates = gradients.base, gradients.updates()
    starts = _starts(gradients)
    own = _tensors_of_ranks(gradients)
    apart = np.array([int(updates[rank]) for rank in own if updates[rank] >= 0], np.int64)
    last = _last_operations(base)
    ends = [
        _awaited(base, int(update)) if update >= 0 and rank in own else last[rank]
        for rank, update in enumerate(updates)
    ]

    def write_updates(draft: StepDraft) -> list[tuple[int, int]]:
        """Updates of all steps but the first; gives rows (shard, operation)."""
        reads = []
        for rank, sizes in own.items():
            seconds = float(base.amount[updates[rank]]) if updates[rank] >= 0 else 0.0
            total = sum(size for listed in sizes.values() for _, size in listed) or 1.0
            for tensor, listed in sizes.items():
                where = starts.get((rank, tensor))
                if where is None:
                    raise GraphError(
                        f"{gradients.names[tensor]}: rank {rank} reduces it but has no forward pass of layer "
                        f"{gradients.layers[tensor]!r}: say where it begins"
                    )
                share = seconds * sum(size for _, size in listed) / total
                label = f"{gradients.names[tensor]} {UPDATE}"
                row = AddedOperation(Act.COMPUTE, share, COMPUTE_STREAM, label, rank=rank, priority=WHEN_IDLE + tensor)
                written = draft.add([row] * (steps - 1))
                begins = where + base.operations * np.arange(1, steps)
                draft.wait(begins, written)
                for end in ends[rank]:
                    draft.wait(written, end + base.operations * np.arange(steps - 1))
                many = len(gradients.size_bytes)
                reads += [(at + many * step, int(written[step])) for step in range(steps - 1) for at, _ in listed]
        return reads

    return _repeated(gradients, steps, ends, apart, write_updates)


@dataclass(frozen=True)
class _Offsets:
    """How far the numbers of one step lie apart from those of the next."""

    operations: int
    shards: int
    launches: int
    lots: int


def _repeated(
    gradients: Gradients,
    steps: int,
    ends: list[list[int]],
    left_out: Ints,
    write: Callable[[StepDraft], list[tuple[int, int]]],
) -> Gradients:
    """Copies of a step in a row: the first operation of a rank waits for its `ends` in the step before."""
    if gradients.steps > 1 or steps < 1:
        raise GraphError(f"{steps} times {gradients.steps} steps: repeat one step, once or more often")
    base = gradients.base
    step = np.arange(steps)
    draft = StepDraft.of(base, steps)
    first = _first_operations(base)
    for rank, over in enumerate(ends):
        for end in over if rank in first else []:
            draft.wait(first[rank] + step[1:] * base.operations, end + step[:-1] * base.operations)
    written = write(draft)
    kept = np.ones(draft.operations, bool)
    kept[(left_out + step[:, None] * base.operations).ravel()] = False
    repeated, number = draft.step(kept)

    by = _Offsets(base.operations, len(gradients.size_bytes), gradients.launches, gradients.lots)
    stays = gradients.read_by[~np.isin(gradients.read_by[:, 1], left_out)]
    made_by, read_by = (_copied(rows, steps, by) for rows in (gradients.made_by, stays))
    read_by = np.concatenate([read_by, np.array(written, np.int64).reshape(-1, 2)])
    made_by[:, 1], read_by[:, 1] = number[made_by[:, 1]], number[read_by[:, 1]]
    last = np.array(sorted({end for listed in ends for end in listed}), np.int64)
    copies = replace(
        gradients,
        base=replace(
            repeated,
            flops=base.flops * steps,
            phases={fact: amount * steps for fact, amount in base.phases.items()},
        ),
        tensor=np.tile(gradients.tensor, steps),
        lane=np.tile(gradients.lane, steps),
        step_of=np.repeat(step, by.shards),
        begins=moved(gradients.begins, number),
        size_bytes=np.tile(gradients.size_bytes, steps),
        made_by=made_by,
        read_by=read_by,
        shard=(gradients.shard + step[:, None] * by.shards).ravel(),
        piece_bytes=np.tile(gradients.piece_bytes, steps),
        launch=(gradients.launch + step[:, None] * by.launches).ravel(),
        lot=(gradients.lot + step[:, None] * by.lots).ravel(),
        priority=np.tile(gradients.priority, steps),
        ends=tuple(number[last + at * base.operations] for at in range(steps)),
    )
    copies.check()
    return copies


def _copied(rows: Ints, steps: int, by: _Offsets) -> Ints:
    """Rows (shard, operation) for every step."""
    return np.concatenate([rows + np.array([at * by.shards, at * by.operations]) for at in range(steps)])


def _awaited(step: Step, operation: int) -> list[int]:
    return [int(at) for at in step.dep[step.dep_start[operation] : step.dep_start[operation + 1]]]


def _first_operations(step: Step) -> dict[int, int]:
    first: dict[int, int] = {}
    for operation in range(step.operations):
        for rank in ranks_of(step, operation):
            first.setdefault(rank, operation)
    return first


def _last_operations(step: Step) -> list[list[int]]:
    """By rank: the operations that it takes part in and that nothing waits for."""
    awaited = np.zeros(step.operations, bool)
    awaited[step.dep] = True
    last: list[list[int]] = [[] for _ in range(step.ranks)]
    for operation in np.flatnonzero(~awaited & (step.act != Act.SEND)).tolist():
        for rank in ranks_of(step, operation):
            last[rank].append(operation)
    return last


def _starts(gradients: Gradients) -> dict[tuple[int, int], int]:
    """By rank and tensor: the operation with which the rank begins the forward pass that reads the tensor."""
    found: dict[tuple[int, int], int] = {}
    for tensor, operation in gradients.begins.tolist():
        for rank in ranks_of(gradients.base, operation):
            found.setdefault((rank, tensor), operation)
    return found


def _tensors_of_ranks(gradients: Gradients) -> dict[int, dict[int, list[tuple[int, float]]]]:
    """By rank and tensor: the shards that the rank sums, with their bytes."""
    found: dict[int, dict[int, list[tuple[int, float]]]] = {}
    for shard, (tensor, lane) in enumerate(zip(gradients.tensor.tolist(), gradients.lane.tolist(), strict=True)):
        for rank in gradients.base.groups[lane].tolist():
            size = float(gradients.size_bytes[shard])
            found.setdefault(rank, {}).setdefault(tensor, []).append((shard, size))
    return found
