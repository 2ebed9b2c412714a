"""Run any program on real tensors, over torch.distributed.

Every rank of a process group calls `run_program` with the same program, as it would call `dist.all_reduce`:

    dist.init_process_group("gloo")
    run_program(ring_all_reduce([range(dist.get_world_size())]), gradients, average=True)

Messages are bytes in `batch_isend_irecv`, so whatever PyTorch can add can be summed, over Gloo on CPUs and over NCCL
on GPUs. What arrives in one step is added in a fixed order: the same inputs give the same bytes, however fast the
others are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from ropewalk.errors import ProgramError
from ropewalk.execute.plan import RankPlan, program_of, rank_plan
from ropewalk.execute.spans import DIRECT, SizedPlan, SizedStep, Span, Transfer, sized
from ropewalk.execute.torch_extra import require_torch

if TYPE_CHECKING:
    from ropewalk.collectives.program import Program
    from ropewalk.collectives.schedule import Schedule

Tensor = Any
Group = Any

_joined: WeakSet[Any] = WeakSet()
"""NCCL groups in which all ranks have met: before that, NCCL allows no exchange between a few of them."""


def run_program(
    program: Program | Schedule,
    tensor: Tensor,
    group: Group = None,
    *,
    output: Tensor = None,
    average: bool = False,
) -> Tensor:
    """Run a program with the ranks of a process group as its ranks; the result of this rank.

    All-reduces and broadcasts work in place, and so does a reduce at its root; the others leave `tensor` as it is and
    write to `output`, or to a new tensor of one dimension. Every rank gives the tensor that PyTorch's collective of
    the kind takes; a rank that only forwards gives one of the same size as others, which is not touched. A rank that
    ends with nothing gets its tensor back. `average` divides sums by the number of ranks that contribute.
    """
    return run_plan(plan_here(program, group), tensor, group, output=output, average=average)


def plan_here(program: Program | Schedule, group: Group = None) -> RankPlan:
    """The plan of this process in the group."""
    require_torch()
    import torch.distributed as dist

    plain = program_of(program)
    if not dist.is_initialized():
        raise ProgramError(
            f"{plain.name}: this process is in no process group: call torch.distributed.init_process_group first"
        )
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    if ranks != plain.ranks:
        raise ProgramError(
            f"{plain.name} is for {plain.ranks} ranks, but the process group has {ranks}: start {plain.ranks} "
            f"processes, or make the program for {ranks} ranks"
        )
    return rank_plan(plain, rank)


def run_plan(
    plan: RankPlan,
    tensor: Tensor,
    group: Group = None,
    *,
    output: Tensor = None,
    average: bool = False,
    first_tag: int = 0,
) -> Tensor:
    """Run what one rank does in a program; see `run_program`. Runs with tags far apart do not disturb each other."""
    import torch

    _check_kind(plan, tensor, average)
    todo = sized(plan, plan.whole_elements(tensor.numel()))
    _check_length(plan, "tensor", tensor.numel(), todo.taken_elements if len(plan.takes) else None)
    with torch.no_grad():
        result = _result(plan, todo, tensor, output)
        in_result = todo.in_result and result.is_contiguous()
        work = result.view(-1) if in_result else tensor.new_empty(todo.work_elements)
        if len(plan.takes) and not (in_result and result is tensor):
            _scatter(work, todo.takes, tensor.reshape(-1))
        for start, stop in todo.zeroed:
            work[start:stop].zero_()
        if average and plan.contributors > 1:
            # Before the sum, so that half precision does not overflow on the way.
            for start, stop in todo.takes:
                work[start:stop].div_(plan.contributors)
        _exchange(todo, work, group, first_tag)
        if result is not None and not in_result:
            result.copy_(_gathered(work, todo.gives).view_as(result))
    return tensor if result is None else result


def _exchange(todo: SizedPlan, work: Tensor, group: Group, first_tag: int) -> None:
    """Post every step when its lane is ready for it, and complete the rest at the end."""
    import torch.distributed as dist

    if dist.get_backend(group) == "nccl":
        _join_once(group)
    staging = work.new_empty(todo.staging_elements)
    under_way: dict[int, list[Any]] = {}
    for number, step in enumerate(todo.steps):
        if step.after >= 0:
            _complete(todo.steps[step.after], under_way.pop(step.after), work, staging)
        under_way[number] = _post(step, work, staging, group, first_tag)
    for number, posted in under_way.items():
        _complete(todo.steps[number], posted, work, staging)


def _post(step: SizedStep, work: Tensor, staging: Tensor, group: Group, first_tag: int) -> list[Any]:
    """Begin all transfers of a step; what is sent is packed first where it does not stand together."""
    import torch
    import torch.distributed as dist

    def operation(kind: Any, one: Transfer) -> Any:
        # As bytes: backends refuse to send some of the types that PyTorch can add.
        moved = _buffer(one, work, staging).view(torch.uint8)
        return dist.P2POp(kind, moved, group=group, tag=first_tag + one.tag, group_peer=one.peer)

    batch = [operation(dist.irecv, one) for one in step.receives]
    for one in step.sends:
        if one.staged != DIRECT:
            _buffer(one, work, staging).copy_(_gathered(work, one.spans))
        batch.append(operation(dist.isend, one))
    return list(dist.batch_isend_irecv(batch)) if batch else []


def _buffer(one: Transfer, work: Tensor, staging: Tensor) -> Tensor:
    """Where a transfer leaves from or arrives."""
    return work[slice(*one.spans[0])] if one.staged == DIRECT else staging[one.staged : one.staged + one.elements]


def _complete(step: SizedStep, posted: list[Any], work: Tensor, staging: Tensor) -> None:
    """Wait until everything is sent and received, then put what waits in staging where it belongs."""
    for transfer in posted:
        transfer.wait()
    for one in step.receives:
        if one.staged == DIRECT:
            continue
        at = one.staged
        for start, stop in one.spans:
            arrived = staging[at : at + stop - start]
            if one.adds:
                work[start:stop].add_(arrived)
            else:
                work[start:stop].copy_(arrived)
            at += stop - start


def _scatter(work: Tensor, spans: tuple[Span, ...], source: Tensor) -> None:
    at = 0
    for start, stop in spans:
        work[start:stop].copy_(source[at : at + stop - start])
        at += stop - start


def _gathered(work: Tensor, spans: tuple[Span, ...]) -> Tensor:
    import torch

    if len(spans) == 1:
        return work[slice(*spans[0])]
    return torch.cat([work[start:stop] for start, stop in spans]) if spans else work[:0]


def _result(plan: RankPlan, todo: SizedPlan, tensor: Tensor, output: Tensor) -> Tensor:
    """Where the result of this rank goes: what the caller gave, the tensor itself, or a new one; None for no result."""
    if not len(plan.gives):
        return None
    if output is not None:
        if output.dtype != tensor.dtype or output.device != tensor.device:
            raise ProgramError(
                f"{plan.name}: the output is {output.dtype} on {output.device}, the tensor {tensor.dtype} on "
                f"{tensor.device}: make them equal"
            )
        _check_length(plan, "output", output.numel(), todo.given_elements)
        return output
    if not len(plan.takes) or np.array_equal(plan.takes, plan.gives):
        return tensor
    return tensor.new_empty(todo.given_elements)


def _check_length(plan: RankPlan, what: str, elements: int, wanted: int | None) -> None:
    if wanted is not None and elements != wanted:
        raise ProgramError(
            f"{plan.name}: the {what} of rank {plan.rank} has {elements} elements: give one of {wanted} elements"
        )


def _check_kind(plan: RankPlan, tensor: Tensor, average: bool) -> None:
    """Only plain tensors can be cut into chunks, and only what has halves can be averaged."""
    import torch

    if tensor.layout != torch.strided or tensor.is_quantized:
        raise ProgramError(f"{plan.name} cuts tensors into chunks, but this one is {tensor.layout}: give a dense one")
    if plan.contributors != 1 and not _adds(tensor.dtype, tensor.device):
        raise ProgramError(f"{plan.name} reduces, which PyTorch cannot do for {tensor.dtype}: convert the tensor first")
    if average and plan.contributors == 0:
        raise ProgramError(f"{plan.name} reduces different ranks for different chunks: run it without average")
    if average and plan.contributors > 1 and not (tensor.is_floating_point() or tensor.is_complex()):
        raise ProgramError(f"{plan.name}: {tensor.dtype} has no averages: run it without average, or on floats")


@lru_cache(maxsize=64)
def _adds(dtype: Any, device: Any) -> bool:
    import torch

    one = torch.ones(1, device=device).to(dtype)
    try:
        one.add_(one)
    except (NotImplementedError, RuntimeError):
        return False
    return True


def _join_once(group: Group) -> None:
    import torch.distributed as dist

    everybody = dist.group.WORLD if group is None else group
    if everybody not in _joined:
        dist.barrier(everybody)
        _joined.add(everybody)
