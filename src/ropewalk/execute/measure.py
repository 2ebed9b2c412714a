"""What one rank does to compare a program with PyTorch's own collective: run both on the same data, check, time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ropewalk.execute.kinds import TORCHS_OWN, equal_shards, padded_all_reduce
from ropewalk.execute.plan import RankPlan
from ropewalk.execute.run import Group, Tensor, run_plan


@dataclass(frozen=True)
class Task:
    """A collective on tensors of one size and type."""

    collective: str
    whole_elements: int
    """Elements in all chunks together."""
    dtype: str
    repeats: int
    seed: int


@dataclass(frozen=True)
class RankReport:
    """What a rank saw."""

    max_error: float
    """Largest difference from PyTorch's result, in any run; infinite where one is not a number and the other is."""
    own_seconds: tuple[float, ...]
    torch_seconds: tuple[float, ...]


def compare(plan: RankPlan, task: Task) -> RankReport:
    """Run the plan and PyTorch's collective by turns, once more than is timed."""
    group = _group_of(plan.members)
    takes_part = plan.rank in plan.members
    reference = TORCHS_OWN[task.collective] if equal_shards(plan) else padded_all_reduce
    brought = _input(plan, task)
    worst = 0.0
    own_times, torch_times = [], []
    for _ in range(task.repeats + 1):
        own_s, own = _timed(lambda given: run_plan(plan, given), brought.clone())
        torch_s, expected = 0.0, None
        if takes_part:
            torch_s, expected = _timed(lambda given: reference(plan, given, group), brought.clone(), group)
        own_times.append(own_s)
        torch_times.append(torch_s)
        if expected is not None:
            worst = max(worst, _difference(own, expected))
    # The first run also makes connections and lays the plan out.
    return RankReport(worst, tuple(own_times[1:]), tuple(torch_times[1:]))


@lru_cache(maxsize=8)
def _group_of(members: tuple[int, ...]) -> Group:
    import torch.distributed as dist

    return None if len(members) == dist.get_world_size() else dist.new_group(list(members))


def _timed(run: Callable[[Tensor], Tensor], given: Tensor, group: Group = None) -> tuple[float, Any]:
    import torch.distributed as dist

    dist.barrier(group)
    start = time.perf_counter()
    result = run(given)
    return time.perf_counter() - start, result


def _input(plan: RankPlan, task: Task) -> Tensor:
    """Numbers by seed and rank: whole ones whose sum fits the type, others between -1 and 1."""
    import torch

    dtype = getattr(torch, task.dtype)
    numbers = torch.Generator().manual_seed(task.seed * 1_000_003 + plan.rank)
    elements = task.whole_elements * plan.share // plan.chunks
    if dtype.is_floating_point:
        return (torch.rand(elements, generator=numbers, dtype=torch.float64) * 2 - 1).to(dtype)
    info = torch.iinfo(dtype)
    # 2^53 keeps differences exact as floats.
    most = min(info.max // plan.ranks, 2**53)
    return torch.randint(0 if info.min == 0 else -most, most, (elements,), generator=numbers, dtype=dtype)


def _difference(own: Tensor, expected: Tensor) -> float:
    import torch

    if own.shape != expected.shape:
        return float("inf")
    if not own.numel() or torch.equal(own, expected):
        return 0.0
    apart = (own.double() - expected.double()).abs()
    return float(torch.where(apart.isnan(), torch.inf, apart).max())
