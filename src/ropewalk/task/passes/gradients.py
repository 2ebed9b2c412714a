"""The gradients of a step, taken out of it: what is summed, who makes it, who reads it, and how it is launched.

A lowered step has its gradient collectives woven in. Here they are lifted out: `base` is everything else, and beside it
stands a plan of launches that passes rewrite, each a pure function from `Gradients` to `Gradients`. `written` weaves
them in again. So no pass has to repair dependencies, and none can lose a reader.

- A *tensor* is what the model calls one: the gradient of a layer. Tensors are numbered as the forward pass reads them.
- A *shard* is a tensor on one communicator (`lane`) in one step: what ranks of a group sum between them.
- A *piece* is a range of a shard, and a *launch* is one collective of one lane: pieces that are summed together.
- A *lot* is the same launch on all lanes: data ranks of every tensor rank do alike at the same time.

Launches stand in one order for all ranks, and a rank hands them over in that order: as NCCL does with one stream of
communication, where ranks that chose for themselves would wait for each other for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ropewalk.arrays import Floats, Ints
from ropewalk.errors import Findings, GraphError
from ropewalk.task.passes.assembly import StepDraft, edges_of, ranks_of
from ropewalk.task.step import Act, Step

UPDATE = "update"
"""What the optimiser's computation is labelled."""
CONSERVED = 1e-9
"""Part of a tensor that may go missing in rounding when it is cut."""
NOBODY = np.zeros(0, np.int64)


class TensorArrival(Enum):
    """How the tensors of one launch become known to those who wait for them."""

    TOGETHER = "together"
    """All at the end: one all-reduce of a buffer that is cut without regard to tensors."""
    GATHERED = "gathered"
    """All are scattered and summed first, then gathered tensor by tensor."""
    THROUGH = "through"
    """Tensor after tensor goes through the whole all-reduce, in one launch."""
    RELEASED = "released"
    """Launches are chunks of one all-reduce that is opened before the first of them is ready: tensors of a chunk are
    known when it is over, and no chunk starts an operation of its own."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """What a step sums over its data ranks, and the launches that do it."""

    base: Step
    """The step without its gradient collectives."""
    names: tuple[str, ...]
    """Tensors, in the order in which the forward pass reads them."""
    layers: tuple[str, ...]
    """By tensor: the layer whose forward pass reads it, as labels of the base name it."""
    stream: int
    """The stream of the base on which gradients are summed."""
    tensor: Ints
    """By shard."""
    lane: Ints
    """By shard: the group of the base that sums it."""
    step_of: Ints
    """By shard: the step whose gradient it is."""
    size_bytes: Floats
    """By shard."""
    begins: Ints
    """Rows (tensor, operation of the base): where the forward pass that reads it begins."""
    made_by: Ints
    """Rows (shard, operation of the base): what must be over before it can be summed."""
    read_by: Ints
    """Rows (shard, operation of the base): who waits for the sum."""
    shard: Ints
    """By piece; pieces stand in the order of their launches."""
    piece_bytes: Floats
    launch: Ints
    """By piece: numbers that go up from 0."""
    lot: Ints
    """By launch; never falls."""
    priority: Ints
    """By launch: lower goes first on every link that two transfers share."""
    credit_bytes: float = 0.0
    """Bytes that may be handed over and not yet summed; 0: one launch at a time."""
    arrival: TensorArrival = TensorArrival.TOGETHER
    act: Act = Act.ALL_REDUCE
    """What sums them: an all-reduce, or a reduce-scatter where ranks keep their share of the sum alone."""
    bucket_bytes: float = 0.0
    """Launches that hold more stand for as many collectives as they fill; 0: for one."""
    ends: tuple[Ints, ...] = field(default=())
    """By step, where there are several: operations of the base with which it is over."""

    @property
    def steps(self) -> int:
        return max(1, len(self.ends))

    @property
    def launches(self) -> int:
        return len(self.lot)

    @property
    def lots(self) -> int:
        """Lots of one step."""
        return (int(self.lot[-1]) + 1) // self.steps if self.launches else 0

    @cached_property
    def launch_bytes(self) -> Floats:
        return np.asarray(np.bincount(self.launch, self.piece_bytes, self.launches), np.float64)

    @cached_property
    def lane_of_launch(self) -> Ints:
        lanes = np.zeros(self.launches, np.int64)
        lanes[self.launch] = self.lane[self.shard]
        return lanes

    @cached_property
    def tensor_bytes(self) -> Floats:
        """Bytes of every tensor on one lane of one step; where lanes differ, the largest."""
        sizes = np.zeros(len(self.names))
        np.maximum.at(sizes, self.tensor, self.size_bytes)
        return sizes

    def updates(self) -> Ints:
        """The operation in which each rank updates its parameters, -1 where it has none."""
        found = np.full(self.base.ranks, -1, np.int64)
        named = [at for at, text in enumerate(self.base.labels) if text == UPDATE]
        at = np.flatnonzero((self.base.act == Act.COMPUTE) & np.isin(self.base.label, named))
        found[self.base.rank[at]] = at
        return found

    def check(self) -> None:
        """Every byte of every shard is launched exactly once, and a launch is of one lane and one step."""
        findings = Findings(GraphError, "gradients")
        if (np.diff(self.launch) < 0).any() or (np.diff(self.lot) < 0).any():
            findings.add("launches or lots are out of order: list pieces launch by launch")
        if not np.array_equal(np.unique(self.launch), np.arange(self.launches)):
            findings.add("a launch has no piece: leave it out")
        findings.raise_if_any()
        launched = np.bincount(self.shard, self.piece_bytes, len(self.size_bytes))
        lost = np.abs(launched - self.size_bytes) > CONSERVED * self.size_bytes
        unused = np.bincount(self.shard, minlength=len(self.size_bytes)) == 0
        for at in np.flatnonzero(lost | unused)[:1]:
            findings.add(
                f"{self.names[self.tensor[at]]} has {self.size_bytes[at]:g} bytes, of which {launched[at]:g} are "
                "launched: launch every byte exactly once"
            )
        home = self.lane[self.shard] * self.steps + self.step_of[self.shard]
        first = np.full(self.launches, -1, np.int64)
        first[self.launch[::-1]] = home[::-1]
        if (first[self.launch] != home).any():
            findings.add("a launch has pieces of two communicators or steps: launch them separately")
        findings.raise_if_any()


def gradients_in(
    step: Step,
    tensor: ArrayLike,
    names: Sequence[str],
    layers: Sequence[str] = (),
    *,
    begins: Sequence[tuple[int, int]] = (),
) -> Gradients:
    """Lift the gradients out of a step in which operation i sums tensor `tensor[i]` (-1: it sums no tensor).

    Tensors are named after the layers that read them unless `layers` says who does; `begins` are rows (tensor,
    operation) that say where the forward passes of those layers begin on each rank, for steps that follow each other.
    An edge between two of them says only in which order they go, and is not kept: the order of the step is. Whoever
    waits for one of them waits for all that stand before it in that order and that its own ranks sum.
    """
    number = np.asarray(tensor, np.int64)
    _check(step, number, names, layers)
    summed = np.flatnonzero(number >= 0)
    waiter, awaited = edges_of(step)
    is_sum = number >= 0
    base, where = StepDraft.of(step).step(~is_sum)
    shard_of = np.cumsum(is_sum) - 1
    made = is_sum[waiter] & ~is_sum[awaited]
    made_by = np.column_stack([shard_of[waiter[made]], where[awaited[made]]])
    reads = ~is_sum[waiter] & is_sum[awaited]
    read_by = _readers(step, summed, shard_of, waiter[reads], awaited[reads])
    read_by[:, 1] = where[read_by[:, 1]]

    first_seen = {int(one): at for at, one in reversed(list(enumerate(number[summed].tolist())))}
    place = {one: at for at, one in enumerate(sorted(first_seen, key=first_seen.__getitem__))}
    lot = np.array([place[int(one)] for one in number[summed]], np.int64)
    order = np.argsort(lot, kind="stable").astype(np.int64)
    gradients = Gradients(
        base,
        tuple(names),
        tuple(layers) or tuple(names),
        int(step.stream[summed[0]]) if len(summed) else 0,
        number[summed],
        step.group[summed].astype(np.int64),
        np.zeros(len(summed), np.int64),
        step.amount[summed],
        moved(begins, where),
        made_by,
        read_by,
        shard=order,
        piece_bytes=step.amount[summed][order],
        launch=np.arange(len(summed)),
        lot=lot[order],
        priority=step.priority[summed][order].astype(np.int64),
        act=Act(int(step.act[summed[0]])) if len(summed) else Act.ALL_REDUCE,
    )
    gradients.check()
    return gradients


def _check(step: Step, number: Ints, names: Sequence[str], layers: Sequence[str]) -> None:
    """Refuse tensors that do not fit the step, and gradients that are not all summed alike."""
    findings = Findings(GraphError, "gradients of a step")
    if layers and len(layers) != len(names):
        findings.add(f"{len(layers)} layers for {len(names)} tensors: give the layer that reads each")
    if number.shape != (step.operations,) or number.max(initial=-1) >= len(names):
        findings.add(
            f"tensors 0…{len(names) - 1} are named for {step.operations} operations: give one, or -1, for each"
        )
    findings.raise_if_any()
    summed = np.flatnonzero(number >= 0)
    acts = {int(act) for act in step.act[summed]}
    if len(acts) > 1 or acts - {Act.ALL_REDUCE, Act.REDUCE_SCATTER}:
        findings.add("gradients use both all-reduce and reduce-scatter: use one of the two")
    if len(np.unique(step.stream[summed])) > 1:
        findings.add("gradients are reduced on several streams: put them on one")
    findings.raise_if_any()


def moved(rows: Sequence[tuple[int, int]] | Ints, where: Ints) -> Ints:
    """Rows (something, operation) by the new numbers of the operations."""
    moved = np.array(rows, np.int64).reshape(-1, 2)
    moved[:, 1] = where[moved[:, 1]]
    return moved


def _readers(step: Step, summed: Ints, shard_of: Ints, reader: Ints, read: Ints) -> Ints:
    """Rows (shard, operation): an operation that waits for a sum reads that and all before it of its own ranks."""
    before: dict[int, int] = {}
    members = [set(step.groups[int(step.group[at])].tolist()) for at in summed]
    mine = {int(at): 1 << int(shard_of[at]) for at in summed}
    for at in summed.tolist():
        awaited = step.dep[step.dep_start[at] : step.dep_start[at + 1]].tolist()
        before[at] = mine[at]
        for other in awaited:
            before[at] |= before.get(other, 0)
    wanted: dict[int, int] = {}
    for who, what in zip(reader.tolist(), read.tolist(), strict=True):
        wanted[who] = wanted.get(who, 0) | before[what]
    rows = []
    for who, bits in wanted.items():
        own = set(ranks_of(step, who))
        rows += [(at, who) for at in range(len(summed)) if bits >> at & 1 and own & members[at]]
    return np.array(rows, np.int64).reshape(-1, 2)
