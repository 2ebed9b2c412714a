"""How much longer a stage takes because its host must launch all that it computes.

A host launches ahead of its GPU. While tokens travel to experts and back its GPU computes nothing and the host goes on,
so only what it needs beyond that stretches a step. Where nothing makes it wait, what counts is whether it needs longer
for all of a step than the GPU does. Routers that drop no tokens make it wait in every layer: how many tokens each
expert gets must be known before they are sent (`cudaEventSynchronize`, or the same inside of DeepEP and HybridEP). Then
what it is ahead is lost in every forward pass, and forward and backward passes each take as long as the slower of both.
Tokens of all ranks must be there, so it is the slowest host that counts (`slowest`).
Passes side by side wait for each other's counts: they are one stretch, in which the work of one hides what the other
exchanges. What tensor ranks exchange gives a host time too; that is not counted, as the host of the A100 was calibrated
without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ropewalk.device.work import Work
from ropewalk.strategy.prices import Inside, KeptPrices
from ropewalk.strategy.shares import Share, computed_again
from ropewalk.task.lower.moves import Move, Scope
from ropewalk.task.lower.taken import sent_s
from ropewalk.task.step import Act
from ropewalk.workload.exchange import Exchange
from ropewalk.workload.operator import Operator, Split

SLOWEST_OF_TWO, SLOWEST_OF_MORE = 1.07, 1.16
"""How much longer the slowest host of several ranks takes for milliseconds of launches than that of a rank alone:
measured with two, four and eight ranks of a server (`benchmarks/gpu_hosts.py`); still more count as eight."""


@dataclass(frozen=True)
class Launched:
    """What a host launches in both passes of one or several layers, and how long their tokens travel."""

    forward: Work
    backward: Work
    """With what is computed again before it."""
    forward_away_s: float = 0.0
    backward_away_s: float = 0.0
    waits: bool = False
    """Does the host wait for counts of tokens?"""

    def pace(self, many: float, update: Work, *, side_by_side: bool) -> float:
        """By what factor a step of so many micro-batches is stretched.

        >>> slow = Launched(Work(1.0, 2.0), Work(2.0, 0.1), waits=True)
        >>> apart, together = slow.pace(4, Work(), side_by_side=False), slow.pace(4, Work(), side_by_side=True)
        >>> round(apart, 2), round(together, 2)
        (1.36, 1.1)
        """
        forth, back = _times(self.forward, many), _times(self.backward, many) + update
        gpu_s = forth.gpu_s + back.gpu_s
        if gpu_s <= 0:
            return 1.0
        if side_by_side:
            return stretched_s(forth + back, 0.0) / gpu_s
        away = many * self.forward_away_s, many * self.backward_away_s
        if self.waits:
            return (stretched_s(forth, away[0]) + stretched_s(back, away[1])) / gpu_s
        return stretched_s(forth + back, sum(away)) / gpu_s


def together(layers: Iterable[Launched]) -> Launched:
    """Several layers as one."""
    forward_gpu_s = forward_host_s = backward_gpu_s = backward_host_s = forward_away_s = backward_away_s = 0.0
    waits = False
    for one in layers:  # a step is priced for many strategies: plain sums take half as long as sums of work
        forward_gpu_s += one.forward.gpu_s
        forward_host_s += one.forward.host_s
        backward_gpu_s += one.backward.gpu_s
        backward_host_s += one.backward.host_s
        forward_away_s += one.forward_away_s
        backward_away_s += one.backward_away_s
        waits = waits or one.waits
    forth, back = Work(forward_gpu_s, forward_host_s), Work(backward_gpu_s, backward_host_s)
    return Launched(forth, back, forward_away_s, backward_away_s, waits)


def stretched_s(work: Work, away_s: float) -> float:
    """Seconds of work whose host goes on while the GPU computes nothing for `away_s`."""
    return replace(work, gpu_s=work.gpu_s + away_s).seconds - away_s


def launched(share: Share, listed: KeptPrices, forward: Iterable[Move], backward: Iterable[Move]) -> Launched:
    """What the host launches for one micro-batch of a layer, whose moves are given."""
    operators = share.layer.operators
    computed = tuple(operator for operator in operators if not isinstance(operator, Exchange))
    return Launched(
        slowest(share, listed.forward(computed)), slowest(share, listed.backward(computed)) + again(share, listed),
        away_s(forward, share.split, listed.inside), away_s(backward, share.split, listed.inside),
        waits_for_counts(operators),
    )  # fmt: skip


def again(share: Share, listed: KeptPrices) -> Work:
    """What of a layer is computed once more before its backward pass."""
    return slowest(share, listed.forward(computed_again(share)))


def slowest(share: Share, work: Work) -> Work:
    """Work of a layer on that of its ranks whose host is the slowest, where all wait for it."""
    ranks = share.split.expert
    if ranks == 1 or not waits_for_counts(share.layer.operators):
        return work
    return Work(work.gpu_s, (SLOWEST_OF_TWO if ranks == 2 else SLOWEST_OF_MORE) * work.host_s)


def away_s(moves: Iterable[Move], split: Split, inside: Inside | None) -> float:
    """Seconds in which a GPU computes nothing because its tokens travel, about: start-ups are left out.

    Of an exchange that runs beside shared experts only what they do not hide counts.
    """
    if inside is None:
        return 0.0
    tensor, away, pending = 1 if split.folded else split.tensor, 0.0, 0.0
    for move in moves:
        if pending:
            away += max(0.0, pending - (move.amount if move.act is Act.COMPUTE else 0.0))
            pending = 0.0
        if move.scope is Scope.EXPERT and move.act is Act.ALL_TO_ALL:
            seconds = sent_s(move.amount, split.expert, tensor, inside)
            away, pending = (away, seconds) if move.beside else (away + seconds, 0.0)
    return away + pending


def waits_for_counts(operators: Iterable[Operator]) -> bool:
    """Must a host know how many tokens each expert gets before it can launch what comes next?"""
    return any(isinstance(operator, Exchange) and operator.counted and not operator.captured for operator in operators)


def _times(work: Work, many: float) -> Work:
    return Work(many * work.gpu_s, many * work.host_s)
