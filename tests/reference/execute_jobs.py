"""What ranks do in the tests of running programs: functions that processes of their own import and call."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ropewalk.collectives import (
    chain_broadcast,
    dedicated_servers,
    halving_doubling_all_reduce,
    hips_two_levels,
    mesh_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from ropewalk.errors import ProgramError
from ropewalk.execute import comm_hook, run_program


def summed_in_place() -> list[Any]:
    """A plain tensor, every second column of one, and one of a single number."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    program = ring_all_reduce([range(ranks)], both_ways=True)
    plain = torch.arange(6).reshape(2, 3) + rank
    wide = torch.arange(20).reshape(2, 10) + rank
    lone = torch.tensor(rank)
    same = [run_program(program, one) is one for one in (plain, wide[:, ::2], lone)]
    kept = run_program(program, wide[:, ::2])  # a second time: what it sums is eight times as much
    return [same[0], same[2], plain.tolist(), wide.tolist(), lone.item(), tuple(kept.shape)]


def averaged() -> list[Any]:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    large = torch.full((5,), 49_152.0, dtype=torch.float16)  # two of these are beyond half precision
    run_program(mesh_all_reduce(ranks), large, average=True)
    shard = run_program(ring_reduce_scatter([range(ranks)]), torch.full((2 * ranks,), float(rank)), average=True)
    return [large.tolist(), shard.tolist(), _refusal(mesh_all_reduce(ranks), torch.arange(4), average=True)]


def given_an_output() -> list[Any]:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    gather = ring_all_gather([range(ranks)])
    everything = torch.empty(ranks, 2, dtype=torch.int64)
    run_program(gather, torch.tensor([rank, -rank]), output=everything)
    everything[:] *= 10
    run_program(gather, everything[rank], output=everything)  # the input is a part of the output
    short = _refusal(gather, torch.tensor([rank]), output=torch.empty(3, dtype=torch.int64))
    other = _refusal(gather, torch.tensor([rank]), output=torch.empty(ranks))
    return [everything.tolist(), short, other]


def odd_types() -> list[Any]:
    """Types that Gloo cannot reduce, or cannot send, and one that PyTorch cannot add."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    program = halving_doubling_all_reduce(ranks)
    small = torch.arange(5, dtype=torch.int16) * rank
    imaginary = torch.tensor([1j, 2 + rank], dtype=torch.complex128)
    flags = torch.tensor([rank == 3, False])
    for tensor in (small, imaginary, flags):
        run_program(program, tensor)
    eighth = torch.ones(4).to(torch.float8_e4m3fn)
    sent = run_program(chain_broadcast((ranks,), segments=3, root=2), (eighth.float() * (rank == 2)).to(eighth.dtype))
    return [small.tolist(), imaginary.tolist(), flags.tolist(), sent.float().tolist(), _refusal(program, eighth)]


def forwarded() -> list[Any]:
    """The last two ranks only serve: their tensors stay as they are."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tensor = torch.full((7,), rank)
    run_program(dedicated_servers(ranks - 2, servers=2), tensor)
    return tensor.tolist()


def in_two_groups() -> list[Any]:
    """Even and odd ranks apart, at the same time."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group(list(range(first, ranks, 2))) for first in (0, 1)]
    tensor = torch.tensor([rank, 1])
    run_program(ring_all_reduce([range(ranks // 2)]), tensor, groups[rank % 2])
    return tensor.tolist()


def wrong_sizes() -> list[str]:
    ranks = dist.get_world_size()
    refusals = [_refusal(mesh_all_reduce(ranks // 2), torch.ones(3))]
    for program in (mesh_all_reduce(ranks // 2), ring_all_gather([range(ranks)]), dedicated_servers(ranks - 1)):
        try:
            comm_hook(program)
        except ProgramError as refusal:
            refusals.append(str(refusal))
    return refusals


def same_bytes() -> bool:
    """Whether twenty runs of sums that depend on their order, with ranks held up by chance, agree to the last bit."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    program = mesh_all_reduce(ranks)
    given = torch.randn(1000, generator=torch.Generator().manual_seed(rank))
    first = run_program(program, given.clone())
    for turn in range(20):
        if (turn * 7 + rank) % 5 == 0:
            sum(range(100_000))
        if not torch.equal(run_program(program, given.clone()), first):
            return False
    return True


def trained() -> list[Any]:
    """Three steps with and without the hook: number of buckets, and how far gradients and weights are apart."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    buckets: set[int] = set()
    program_hook = comm_hook(hips_two_levels(ranks // 2, 2).all_reduce("hips"))

    def counting(state, bucket):
        buckets.add(bucket.index())
        return program_hook(state, bucket)

    models = []
    for hook in (None, counting):
        torch.manual_seed(5)
        net = nn.Sequential(nn.Linear(9, 33), nn.Tanh(), nn.Linear(33, 17), nn.Tanh(), nn.Linear(17, 3)).double()
        model = DistributedDataParallel(net, bucket_cap_mb=0.001)
        if hook is not None:
            model.register_comm_hook(None, hook)
        models.append(model)
    torch.manual_seed(rank)
    apart = 0.0
    for _ in range(3):
        x = torch.randn(4, 9, dtype=torch.float64)
        for model in models:
            model.zero_grad()
            model(x).square().sum().backward()
        for one, other in zip(*(model.parameters() for model in models), strict=True):
            apart = max(apart, float((one.grad - other.grad).abs().max()))
            with torch.no_grad():
                one -= 0.1 * one.grad
                other -= 0.1 * other.grad
    weights = torch.cat([parameter.detach().flatten() for parameter in models[1].parameters()])
    return [len(buckets), apart, weights.numpy().tobytes()]


def hooked_before_others() -> float:
    """Rank 0 calls the hook before any other does: it returns only if it does not wait for them."""
    ranks = dist.get_world_size()
    hook = comm_hook(ring_all_reduce([range(ranks)]))
    gradients = torch.full((3,), float(dist.get_rank()))
    bucket = SimpleNamespace(buffer=lambda: gradients)
    if dist.get_rank() == 0:
        future = hook(None, bucket)
    dist.barrier()
    if dist.get_rank() != 0:
        future = hook(None, bucket)
    return float(future.wait()[0])


def hooked_on_whole_numbers() -> str:
    """What the one that waits for gradients is told when they cannot be averaged."""
    hook = comm_hook(ring_all_reduce([range(dist.get_world_size())]))
    try:
        hook(None, SimpleNamespace(buffer=lambda: torch.arange(3))).wait()
    except ProgramError as refusal:
        return str(refusal)
    return "accepted"


def end_at_once(rank_that_ends: int) -> None:
    if dist.get_rank() == rank_that_ends:
        os.write(2, b"no memory left")
        os._exit(3)
    dist.barrier()


def raise_an_error() -> None:
    if dist.get_rank() == 1:
        raise ValueError("rank one has had enough")
    dist.barrier()


def refuse() -> None:
    raise ProgramError("not like this: do it differently")


def answer_at_once() -> None:
    pass


def wait_for_ever() -> None:
    if dist.get_rank() == 0:
        dist.barrier()


def _refusal(program: Any, tensor: Any, **options: Any) -> str:
    try:
        run_program(program, tensor, **options)
    except ProgramError as refusal:
        return str(refusal)
    return "accepted"
