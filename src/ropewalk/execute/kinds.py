"""Which collective a plan carries out, told from who brings and who gets how much; and PyTorch's own of that kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ropewalk.arrays import Ints
from ropewalk.errors import ProgramError
from ropewalk.execute.plan import RankPlan
from ropewalk.execute.run import Group, Tensor


def kind_of(plan: RankPlan) -> str:
    """The collective, by the name it has on the command line.

    >>> from ropewalk.collectives import chain_reduce, ring_all_gather
    >>> from ropewalk.execute.plan import rank_plan
    >>> kind_of(rank_plan(ring_all_gather([[0, 1, 2]]), 0)), kind_of(rank_plan(chain_reduce((3,), segments=2), 0))
    ('allgather', 'reduce')
    """
    takers, givers = _those_with(plan.taken), _those_with(plan.given)
    whole_in = _counts(plan.taken) == {plan.chunks}
    whole_out = _counts(plan.given) == {plan.chunks}
    if whole_in and whole_out and takers != givers:
        return "broadcast" if len(takers) == 1 else "reduce"
    return {
        (True, True): "allreduce",
        (False, True): "allgather",
        (True, False): "reducescatter",
        (False, False): "alltoall",
    }[whole_in, whole_out]


def require_kind(plan: RankPlan, collective: str) -> None:
    """Refuse a program that does something else than the caller thinks."""
    if collective not in TORCHS_OWN:
        raise ProgramError(f"there is no collective {collective!r}: choose {', '.join(TORCHS_OWN)}")
    if (kind := kind_of(plan)) != collective:
        raise ProgramError(f"{plan.name} is not an {collective} but an {kind}: name it {kind}, or give another program")


def equal_shards(plan: RankPlan) -> bool:
    """Whether all members bring the same, and all get the same; PyTorch's collectives know nothing else."""
    takers, givers = _those_with(plan.taken), _those_with(plan.given)
    alike = len(_counts(plan.taken)) == len(_counts(plan.given)) == 1
    return alike and (takers == givers or kind_of(plan) in ("broadcast", "reduce"))


def whole_multiple(plan: RankPlan) -> int:
    """What the elements of all chunks together must be a multiple of, so that all shards are whole."""
    if not equal_shards(plan):
        return plan.chunks
    pieces = [plan.chunks // min(_counts(counts)) for counts in (plan.taken, plan.given)]
    return pieces[0] * pieces[1]


def _those_with(counts: tuple[int, ...]) -> set[int]:
    return {rank for rank, count in enumerate(counts) if count}


def _counts(counts: tuple[int, ...]) -> set[int]:
    return {count for count in counts if count}


Reference = Callable[[RankPlan, Tensor, Group], Tensor]
"""(plan, tensor, group of the members) -> what this rank should end with; None for nothing. May use the tensor up."""


def _all_reduce(plan: RankPlan, tensor: Tensor, members: Group) -> Tensor:
    import torch.distributed as dist

    dist.all_reduce(tensor, group=members)
    return tensor


def _all_gather(plan: RankPlan, tensor: Tensor, members: Group) -> Tensor:
    import torch.distributed as dist

    gathered = tensor.new_empty(tensor.numel() * dist.get_world_size(members))
    dist.all_gather_single(gathered, tensor, group=members)
    return gathered


def _reduce_scatter(plan: RankPlan, tensor: Tensor, members: Group) -> Tensor:
    import torch.distributed as dist

    own = tensor.new_empty(tensor.numel() // dist.get_world_size(members))
    dist.reduce_scatter_single(own, tensor, group=members)
    return own


def _broadcast(plan: RankPlan, tensor: Tensor, members: Group) -> Tensor:
    import torch.distributed as dist

    dist.broadcast(tensor, min(_those_with(plan.taken)), group=members)
    return tensor


def _reduce(plan: RankPlan, tensor: Tensor, members: Group) -> Tensor:
    import torch.distributed as dist

    root = min(_those_with(plan.given))
    dist.reduce(tensor, root, group=members)
    return tensor if plan.rank == root else None


def _all_to_all(plan: RankPlan, tensor: Tensor, members: Group) -> Tensor:
    import torch.distributed as dist

    received = tensor.new_empty(tensor.numel())
    dist.all_to_all_single(received, tensor, group=members)
    return received


TORCHS_OWN: Mapping[str, Reference] = {
    "allreduce": _all_reduce,
    "allgather": _all_gather,
    "reducescatter": _reduce_scatter,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "alltoall": _all_to_all,
}


def padded_all_reduce(plan: RankPlan, tensor: Tensor, members: Group) -> Tensor:
    """What any collective does, where shards are not equal: everybody's chunks in their places, summed up, cut out."""
    import torch
    import torch.distributed as dist

    whole = plan.whole_elements(tensor.numel())
    everything = tensor.new_zeros(whole)
    brought = 0
    for start, stop in _cuts(plan, plan.takes, whole):
        everything[start:stop] = tensor[brought : brought + stop - start]
        brought += stop - start
    dist.all_reduce(everything, group=members)
    cuts = [everything[start:stop] for start, stop in _cuts(plan, plan.gives, whole)]
    return torch.cat(cuts) if cuts else None


def _cuts(plan: RankPlan, places: Ints, whole: int) -> Iterable[tuple[int, int]]:
    start, stop = plan.offsets(places, whole)
    return zip(start.tolist(), stop.tolist(), strict=True)
