"""The work of a job from a decided step: what its groups exchange, and how much of that hides behind computing.

The step is simulated on a quiet network (`ropewalk.training`), which says how long it takes and for which purpose it
waits for the network. Its collectives become the exchanges of the job: by purpose the bytes of the group that moves
most, in the groups that the strategy has. What the simulation saw exposed of an exchange (its last bucket, say) is
exposed however fast the network is; the rest hides. How much longer it may take and still hide is seen in a second
simulation with NICs a quarter as fast: what hides then is all the room there is. So a job alone takes the simulated
step, whatever the order of its gradients, its buckets or its timetable are. What the simulation charges beyond that
(launches, rounds) counts as computing: no other job makes it longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.choice import CollectiveChoice, collective_choice
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.sim.step import StepStatistics
from ropewalk.strategy import Strategy
from ropewalk.task.lower import STREAMS
from ropewalk.task.step import Act, Step
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.collectives import PATTERNS, USUAL
from ropewalk.tenancy.decided import Decided, servers_of
from ropewalk.tenancy.footprint import footprint_of
from ropewalk.tenancy.paths import SwitchNetwork, ideal
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.rounds import groups_of
from ropewalk.tenancy.work import Iteration, JobExchange
from ropewalk.training import TrainingQuestion, answer
from ropewalk.training.prepared import prepared
from ropewalk.training.quick import QuickSteps
from ropewalk.training.quick_answer import quick_answer

SLOW = 4.0
"""How much slower the NICs of the second simulation are: more than collisions make an exchange, mostly."""
MOST_MORE = 1.5
"""How much longer links may be busy than their bytes take: NCCL fills 87 % of them, rings send up to a third more."""
RINGS = ("ring", "ring-one-way", "double-ring", "nccl")
"""What libraries run as rings over all NICs."""
Purpose = tuple[str, JobExchange]
"""What ranks meet for, as the streams of a step are called, and what they exchange for it."""


def work_of_step(decided: Decided, place: Allocation, plant: Plant, all_reduce: str | None = None) -> Iteration:
    """One step of what was decided, for a job that sits there; all-reduces run as the plan says unless given.

    >>> from ropewalk.tenancy.decided import by_degrees
    >>> from ropewalk.tenancy.occupancy import Occupancy
    >>> from ropewalk.tenancy.plant import plant
    >>> from ropewalk.tenancy.shared import gpus_only
    >>> small = plant("leaf-spine:2x8x8")
    >>> work = work_of_step(by_degrees("gpt2", 16, {}, 4, "h200"), gpus_only(Occupancy(small), "a", 16), small)
    >>> [(one.collective, round(one.size_bytes / 1e6)) for one in work.exchanges]
    [('hierarchical-ring', 271), ('hierarchical-ring', 102)]
    """
    made = prepared(decided.question(servers_of(place.size, plant, decided.device)))
    choice = collective_choice(made.question.network.algorithm)
    met = [_instead(purpose, all_reduce) for purpose in _met(made.write(), decided.strategy, choice)]
    found = _answered(made.question)
    slow = replace(plant, nic_bandwidth=plant.nic_bandwidth / SLOW, link_bandwidth=plant.link_bandwidth / SLOW)
    seen_slow = _answered(decided.question(servers_of(place.size, slow, decided.device)))
    met = _filled(met, seen_slow, place, slow)
    quiet_s, exposed_s = _times(met, found, place, plant)
    slow_s, still_exposed_s = _times(met, seen_slow, place, slow)
    always_s, hidden_s = np.minimum(exposed_s, quiet_s), np.maximum(quiet_s - exposed_s, 0.0)
    compute_s = found.step_time_s - float(always_s.sum())
    room_s = _rooms(hidden_s, slow_s - still_exposed_s, compute_s)
    part = np.divide(always_s, quiet_s, out=np.zeros_like(quiet_s), where=quiet_s > 0)
    exchanges = (
        piece for (_, one), open_part, room in zip(met, part.tolist(), room_s.tolist(), strict=True)
        for piece in _in_two(one, open_part, room)
    )  # fmt: skip
    return Iteration(compute_s, tuple(exchanges), busy_s=found.compute_s)


def _filled(met: list[Purpose], found: StepStatistics, place: Allocation, plant: Plant) -> list[Purpose]:
    """The exchanges with as many bytes as would keep links busy for as long as the simulation saw them used.

    Libraries do not fill links, and rings that pass every server as often as it has NICs send more between servers than
    hierarchical ones do.
    """
    total_s = float(_times(met, found, place, plant)[0].sum())
    more = min(max(found.communication_s / total_s, 1.0), MOST_MORE) if total_s else 1.0
    return [(purpose, replace(one, size_bytes=one.size_bytes * more)) for purpose, one in met]


def _times(
    met: Sequence[Purpose], found: StepStatistics, place: Allocation, plant: Plant
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds of every exchange on a quiet network with the speeds of a plant, and those that were exposed."""
    network = SwitchNetwork(plant, plant.cables, lambda: np.zeros(0), 0)
    quiet_s = np.array(
        [footprint_of(Iteration(0.0, (one,)), place, network, ideal).quiet_iteration_s for _, one in met]
    )
    return quiet_s, _shared_out([purpose for purpose, _ in met], quiet_s, found.exposed_by_purpose_s)


def _rooms(hidden_s: NDArray[np.float64], most_s: NDArray[np.float64], compute_s: float) -> NDArray[np.float64]:
    """Computing that each exchange may hide behind: at least what it does hide, at most what it could.

    Exchanges hide one after the other here. In a step those of different purposes may hide behind the same kernels;
    where there is not enough for all, each gets its part.
    """
    needed = float(hidden_s.sum())
    if needed > compute_s:
        return hidden_s * (compute_s / needed)
    more_s = np.maximum(most_s - hidden_s, 0.0)
    spare = min(1.0, (compute_s - needed) / float(more_s.sum())) if more_s.any() else 0.0
    return np.asarray(hidden_s + more_s * spare * (1 - 1e-12), np.float64)


def _in_two(exchange: JobExchange, open_part: float, room_s: float) -> Iterator[JobExchange]:
    """The part of an exchange that hides, and the part that never does."""
    if open_part < 1:
        yield replace(exchange, size_bytes=exchange.size_bytes * (1 - open_part), overlap_s=room_s)
    if open_part > 0:
        yield replace(exchange, size_bytes=exchange.size_bytes * open_part)


def _instead(met: Purpose, all_reduce: str | None) -> Purpose:
    """The same with another all-reduce, where it is one and another is given."""
    purpose, exchange = met
    if all_reduce is None or ":" in exchange.collective or exchange.collective in PATTERNS:
        return met
    return purpose, replace(exchange, collective=all_reduce)


def _answered(question: TrainingQuestion) -> StepStatistics:
    strategy = question.decided
    assert strategy is not None
    if question.detail == "stage" and QuickSteps.covers(strategy):
        return quick_answer(QuickSteps(question), question).statistics
    return answer(question).statistics


def _shared_out(
    purposes: Sequence[str], quiet_s: NDArray[np.float64], exposed_s: Mapping[str, float]
) -> NDArray[np.float64]:
    """What each exchange is exposed for: what the simulation saw of its purpose, by how long it takes."""
    total = dict.fromkeys(purposes, 0.0)
    for purpose, seconds in zip(purposes, quiet_s.tolist(), strict=True):
        total[purpose] += seconds
    parts = [
        exposed_s.get(purpose, 0.0) * seconds / total[purpose] if total[purpose] else 0.0
        for purpose, seconds in zip(purposes, quiet_s.tolist(), strict=True)
    ]
    return np.array(parts, np.float64)


def _met(step: Step, strategy: Strategy, choice: CollectiveChoice) -> Iterator[Purpose]:
    """What ranks exchange in a step, by purpose: like groups together, with the bytes of the one that moves most."""
    for (act, stream, _, _), (groups, amount) in _collectives(step).items():
        yield STREAMS[stream], _over(groups, step.ranks, _named(act, choice.name_for(STREAMS[stream])), amount)
    sends = (step.act == Act.SEND) & (step.peer != step.rank)
    if not sends.any():
        return
    if not strategy.parts and strategy.copies == 1:
        ahead = sends & (step.peer > step.rank)
        most = float(np.bincount(step.rank[ahead], step.amount[ahead], minlength=1).max())
        yield "pipeline", JobExchange("pipeline", most, 0.0, strategy.pipeline, step.ranks // strategy.pipeline)
        return
    yield "pipeline", _between_pairs(step, np.flatnonzero(sends))


def _collectives(step: Step) -> dict[tuple[Act, int, int, int], tuple[list[tuple[int, ...]], float]]:
    """(act, stream, ranks of a group, from one to the next) -> all groups, and the bytes of the one that moves most."""
    at = np.flatnonzero((step.act >= Act.ALL_REDUCE) & (step.act != Act.BARRIER))
    count = len(step.groups)
    key = (step.act[at].astype(np.int64) * len(STREAMS) + step.stream[at]) * count + step.group[at]
    kinds, which = np.unique(key, return_inverse=True)
    amounts = np.bincount(which, step.amount[at], minlength=len(kinds))
    found: dict[tuple[Act, int, int, int], tuple[list[tuple[int, ...]], float]] = {}
    for kind, amount in zip(kinds.tolist(), amounts.tolist(), strict=True):
        kind, group = divmod(kind, count)
        act, stream = divmod(kind, len(STREAMS))
        members = tuple(step.groups[group].tolist())
        if len(members) < 2 or not amount:
            continue
        like = Act(act), stream, len(members), abs(members[1] - members[0])
        groups, most = found.get(like, ([], 0.0))
        found[like] = ([*groups, members], max(most, amount))
    return found


def _named(act: Act, chosen: str) -> str:
    """The name of what a group runs, in the words of `ropewalk.tenancy.collectives`.

    A library's ring passes every server as often as it has NICs, so that all of them work; among jobs, where a `ring`
    passes it once, that is the hierarchical one. All pairs at once become rounds.
    """
    if act not in COLLECTIVES[chosen].make or chosen == "direct":
        chosen = USUAL.get(act.words, "ring")
    if chosen in RINGS and act is not Act.ALL_TO_ALL:
        chosen = "hierarchical-ring"
    return chosen if act is Act.ALL_REDUCE else f"{act.words}:{chosen}"


def _over(groups: list[tuple[int, ...]], ranks: int, collective: str, amount: float) -> JobExchange:
    """An exchange over these groups: counted where they are evenly spaced and cover all ranks, listed where not."""
    size, stride = len(groups[0]), groups[0][1] - groups[0][0]
    if stride > 0 and ranks % (size * stride) == 0:
        counted = {tuple(row) for row in groups_of(ranks, size, stride).tolist()}
        if counted == set(groups):
            return JobExchange(collective, amount, 0.0, size, stride)
    return JobExchange(collective, amount, groups=tuple(sorted(set(groups))))


def _between_pairs(step: Step, sends: NDArray[np.int64]) -> JobExchange:
    """Sends between stages of different widths, both ways: the rank that sends most spreads it over its peers."""
    src, dst, amount = step.rank[sends], step.peer[sends], step.amount[sends]
    pairs = sorted({(int(min(a, b)), int(max(a, b))) for a, b in zip(src, dst, strict=True)})
    peers = np.bincount(np.array(pairs).ravel(), minlength=step.ranks)
    most = max(np.bincount(src, amount).max(), np.bincount(dst, amount).max())
    return JobExchange("pipeline", float(most) / int(peers.max()), groups=tuple(pairs))
