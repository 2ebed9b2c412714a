"""Where prediction and measurement part: which link, when, and what the counters of the kernel say about why.

Both are curves of what a link had sent by when. A link is behind by the seconds it would need to send what it should
have sent by then; what it sends beyond the prediction, such as acknowledgements, is left out by comparing parts of its
own total. Links further on wait for the first that falls behind, so the first is the one to look at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.lab.queues import burst_bytes
from ropewalk.units import show_seconds, show_size

if TYPE_CHECKING:
    from ropewalk.lab.answer import LabAnswer
    from ropewalk.lab.result import FlowTimes, LinkCurves, Span

POINTS = 400
LEAST_PART, LEAST_S = 0.03, 0.02
"""Part of the run, and seconds, by which a link must be off before it counts as parting."""
TOGETHER = 0.02
"""Part of the run within which links part at the same time."""
CROWD = 4
"""Flows that share a link at once from which on a queue that serves in order of arrival differs from fair shares."""
BUSY = 0.5
"""Part of the run for which a link sends from which on acknowledgements wait behind its data."""


@dataclass(frozen=True)
class Parting:
    """The link on which prediction and measurement first part, and the one on which they part the most."""

    link: str | None
    """None where no link is off by enough to be told from noise."""
    began_s: float
    behind_s: float
    """The most that this link is behind, in seconds of sending; negative where it is ahead."""
    at_s: float
    """When."""
    farthest: str
    farthest_s: float
    reasons: tuple[str, ...]

    def said(self) -> list[str]:
        """In sentences."""
        if self.link is None:
            return [
                f"prediction and measurement agree: no link is ever more than "
                f"{show_seconds(abs(self.farthest_s))} of sending off ({self.farthest})"
            ]
        side = "behind" if self.behind_s > 0 else "ahead of"
        first = (
            f"they diverge on {self.link} from {show_seconds(self.began_s)} on: by {show_seconds(self.at_s)} it is "
            f"{show_seconds(abs(self.behind_s))} of sending time {side} the prediction"
        )
        if show_seconds(abs(self.farthest_s)) != show_seconds(abs(self.behind_s)):
            first += f" (the most on any link: {show_seconds(abs(self.farthest_s))}, on {self.farthest})"
        return [first, *self.reasons]

    def as_json(self) -> dict[str, Any]:
        return {
            "link": self.link,
            "began_s": self.began_s,
            "behind_s": self.behind_s,
            "at_s": self.at_s,
            "farthest_link": self.farthest,
            "farthest_behind_s": self.farthest_s,
            "reasons": list(self.reasons),
        }


def behind(answer: LabAnswer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Instants, and the seconds of sending that every link is behind the flow level at each: (instant, link)."""
    until = max(answer.predicted_s, answer.typical.seconds)
    at = np.linspace(0.0, until, POINTS)
    expected = _part_sent(answer.levels[0].curves, at)
    seen = _part_sent(answer.typical_curves, at)
    return at, (expected - seen) * (answer.predicted_bytes / answer.wire_speed)


def _part_sent(curves: LinkCurves, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of its own total that every link has sent by each instant."""
    total = np.maximum(curves.sent_bytes[-1], 1e-300)
    return np.column_stack([np.interp(at, curves.at_s, sent) for sent in (curves.sent_bytes / total).T])


def parting(answer: LabAnswer) -> Parting:
    """Compare the typical run with the flow level, link by link."""
    at, late = behind(answer)
    off = np.abs(late)
    least = max(LEAST_PART * answer.predicted_s, LEAST_S)
    farthest = int(off.max(axis=0).argmax())
    name = answer.fabric.link_name
    most_s = _extreme(late[:, farthest])[1]
    if abs(answer.error) > LEAST_PART:
        # What explains a run that is faster than predicted is a link that is ahead, not one that is behind.
        off = np.maximum(np.sign(answer.error) * late, 0.0)
    if not (off > least).any():
        off = np.abs(late)
    began = np.where((off > least).any(axis=0), at[(off > least).argmax(axis=0)], np.inf)
    if not np.isfinite(began).any():
        return Parting(None, 0.0, 0.0, 0.0, name(farthest), most_s, ())
    first = _first(answer, began, off)
    when, worst_s = _extreme(late[:, first])
    reasons = tuple(_reasons(answer, first, float(began[first]), float(at[when]), worst_s))
    if not reasons:
        reasons = ("no counter of the kernel explains it",)
    return Parting(name(first), float(began[first]), worst_s, float(at[when]), name(farthest), most_s, reasons)


def _first(answer: LabAnswer, began: NDArray[np.float64], off: NDArray[np.float64]) -> int:
    """The link that parts first; of those that do so together, as links of one path do, that with the longest queue."""
    together = np.flatnonzero(began <= began.min() + TOGETHER * answer.predicted_s)
    waiting = answer.typical_curves.waiting_bytes
    queue = np.zeros(len(began)) if waiting is None else waiting.max(axis=0)
    return int(together[np.lexsort((-off.max(axis=0)[together], -queue[together]))[0]])


def _extreme(late: NDArray[np.float64]) -> tuple[int, float]:
    when = int(np.abs(late).argmax())
    return when, float(late[when])


def _reasons(answer: LabAnswer, link: int, began_s: float, at_s: float, behind_s: float) -> Iterator[str]:
    """What could explain it, what is certain first."""
    if (why := answer.typical.machine.disturbed()) is not None:
        yield f"the machine disturbed the run: {why}"
    yield from _of_faults(answer)
    if answer.changed:
        yield "another command changed links during the run"
    if behind_s < 0:
        yield from _of_ahead(answer, link, at_s, -behind_s)
        return
    if answer.taken is not None and answer.taken.strayed:
        yield "flows did not take their assigned links"
    if answer.dropped or answer.retransmitted:
        packets, segments = ("" if count == 1 else "s" for count in (answer.dropped, answer.retransmitted))
        yield (
            f"queues dropped {answer.dropped or 'no'} packet{packets} and TCP retransmitted "
            f"{answer.retransmitted or 'no'} segment{segments} in all runs"
            + (", each after a timeout or duplicate acknowledgements" if answer.retransmitted else "")
        )
    if not answer.fair:
        yield from _of_one_queue(answer, link, began_s)
    others = [one for one in answer.levels if one.level == "packet"]
    if others and abs(answer.measured_s / others[0].seconds - 1) < abs(answer.error):
        yield (
            f"the packet level, with queues, windows and acknowledgements, is off by "
            f"{100 * (answer.measured_s / others[0].seconds - 1):+.1f} % alone"
        )


def _of_ahead(answer: LabAnswer, link: int, at_s: float, ahead_s: float) -> Iterator[str]:
    """Why a link has sent more than max-min fair flows would have by `at_s`."""
    speed = float(answer.wire_speed[link])
    bucket = burst_bytes(round(8 * speed), fair=answer.fair)
    before = [one for one in answer.flows() if one.predicted["flow"].start_s < at_s]
    pauses = _pauses([one.predicted["flow"] for one in before if link in one.links], bucket / speed)
    if bucket / speed > ahead_s / 2:
        yield (
            f"its token bucket was full after a pause and let {show_size(bucket)} pass at once, "
            f"{show_seconds(bucket / speed)} of sending"
        )
    elif pauses and (1 + pauses) * bucket / speed > ahead_s / 2:
        yield (
            f"its token bucket fills again in every pause, {pauses} until then, and lets {show_size(bucket)} pass at "
            f"once afterwards, {show_seconds(bucket / speed)} of sending each time"
        )
    early_s, shared = _early(before)
    if early_s > ahead_s / 2:
        where = "it" if shared == link else answer.fabric.link_name(shared)
        yield (
            f"transfers that share {where} end one after the other, not all at the end as with equal shares: the first "
            f"one up to {show_seconds(early_s)} early, and what waits for it starts earlier"
        )


def _pauses(busy: list[Span], least_s: float) -> int:
    """Times between predicted transfers in which a link is idle for so long that its bucket fills."""
    found, until = 0, 0.0
    for one in sorted(busy, key=lambda span: span.start_s):
        found += one.start_s - until >= least_s
        until = max(until, one.end_s)
    return found


def _early(flows: list[FlowTimes]) -> tuple[float, int]:
    """The most that the first of several transfers on a link, predicted to end together, ends before that; the link."""
    together: dict[tuple[int, float], list[float]] = defaultdict(list)
    for one in flows:
        for link in one.links:
            together[link, round(one.predicted["flow"].end_s, 6)].append(one.measured.end_s)
    early = [(end_s - min(seen), link) for (link, end_s), seen in together.items() if len(seen) > 1]
    return max(early, key=lambda found: found[0], default=(0.0, -1))


def _of_faults(answer: LabAnswer) -> Iterator[str]:
    """Transfers that went on later than their link."""
    for fault in answer.faults:
        late = [until for _, since, until in answer.typical.stalls if fault.up_s and since < fault.up_s < until]
        if fault.up_s is not None and late:
            yield (
                f"TCP noticed {show_seconds(max(late) - fault.up_s)} after {fault.link} was up: its retransmission "
                "timeout doubles while nothing is acknowledged"
            )


def _of_one_queue(answer: LabAnswer, link: int, began_s: float) -> Iterator[str]:
    """What happens where all packets of a link leave in the order in which they came."""
    sharing = _sharing(answer, link, began_s)
    if sharing >= CROWD:
        yield f"{sharing} flows share it then, and its queue serves them in order of arrival, not fairly"
    back = _opposite(answer, link)
    if back is not None and (busy := _busy(answer, back)) > BUSY:
        yield (
            f"acknowledgements wait behind data on {answer.fabric.link_name(back)}, which sends for "
            f"{100 * busy:.0f} % of the run"
        )


def _sharing(answer: LabAnswer, link: int, at_s: float) -> int:
    """Transfers over a link that are under way at a moment of the typical run."""
    return sum(link in one.links and one.measured.start_s <= at_s < one.measured.end_s for one in answer.flows())


def _opposite(answer: LabAnswer, link: int) -> int | None:
    fabric = answer.fabric
    back = np.flatnonzero((fabric.link_src == fabric.link_dst[link]) & (fabric.link_dst == fabric.link_src[link]))
    return int(back[0]) if len(back) else None


def _busy(answer: LabAnswer, link: int) -> float:
    return float(answer.sent_bytes[link] / answer.wire_speed[link] / answer.measured_s)
