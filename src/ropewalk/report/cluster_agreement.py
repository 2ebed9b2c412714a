"""The page of an agreement: how far the rates of a replay are from flows and packets, and what makes the difference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.report import quantity
from ropewalk.report.axis import Figure, layout, value_axis
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.page import render
from ropewalk.tenancy.agreement import Agreement, JobCompared, MomentCompared
from ropewalk.tenancy.agreement.answer import summary_of

MOMENT_HEADS = (
    "at", "jobs", "use links", "contended", "replay", "flows", "packets alone", "packets", "other hash", "pauses",
    "scale",
)  # fmt: skip
REPLAY, FLOWS = palette.BLUE, palette.AMBER


def agreement_page(found: Agreement, warnings: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """One self-contained HTML page."""
    return render(
        "cluster_agreement.html",
        title=f"{found.question.trace}: the replay and packets",
        charts=[points_chart(found)],
        headline=headline(found),
        lead=lead(found),
        warnings=warnings,
        steps=step_rows(found),
        heads=MOMENT_HEADS,
        rows=moment_rows(found),
        notes=[*notes, *remarks(found), *_reading(found)],
    )


def headline(found: Agreement) -> str:
    """By how much the replay's iterations differ from those of packets."""
    values = found.steps["replay against packets"]
    mean = float(values.mean())
    how = f"{quantity.percent(abs(mean))} {'shorter' if mean < 0 else 'longer'} than packet by packet on average"
    if abs(mean) < 0.0005:
        how = "as long as packet by packet on average"
    low, high = np.percentile(values, [10, 90])
    return (
        f"The replay's iterations are {how}; eight of ten are between {quantity.percent(low, signed=True)} and "
        f"{quantity.percent(high, signed=True)}"
    )


def lead(found: Agreement) -> str:
    """What was compared."""
    asked, jobs = found.question, found.jobs
    meet = sum(job.meets > 0 for job in jobs)
    return (
        f"{quantity.count(len(found.moments))} moments of {asked.trace} under {asked.policy.name} on "
        f"{asked.plant.name}: {quantity.count(len(jobs))} jobs that use links between switches, "
        f"{quantity.count(meet)} of which share a link with another job; {asked.use.transport}."
    )


def step_rows(found: Agreement) -> list[list[str]]:
    """Mean, mean size, tenths and the largest of the differences of every kind."""
    return [[name, *_summary(values)] for name, values in found.steps.items()]


def _summary(values: NDArray[np.float64]) -> list[str]:
    seen = summary_of(values)
    signed = [quantity.percent(seen[name], signed=True) for name in ("mean", "p10", "p90")]
    return [signed[0], quantity.percent(seen["mean_size"]), *signed[1:], quantity.percent(seen["largest_size"])]


def moment_rows(found: Agreement) -> list[list[str]]:
    """A row for every moment: mean times of its jobs over those on a quiet network."""
    return [_moment_row(moment) for moment in found.moments]


def _moment_row(moment: MomentCompared) -> list[str]:
    jobs = moment.over_links

    def mean(values: Sequence[float | None]) -> str:
        known = [value for value in values if value is not None]
        return f"{np.mean(known):.3f}" if known else "–"

    return [
        f"{moment.at_s:,.0f} s",
        str(len(moment.jobs)),
        str(len(jobs)),
        str(sum(job.meets > 0 for job in jobs)),
        mean([job.replay for job in jobs]),
        mean([job.flow for job in jobs]),
        mean([job.packet_alone for job in jobs]),
        mean([job.packet for job in jobs]),
        mean([job.switch_hash for job in jobs]),
        quantity.count(moment.pauses),
        f"{moment.scale:g}",
    ]


def remarks(found: Agreement) -> list[str]:
    """What packets did that neither the replay nor flows know of."""
    jobs = found.jobs
    paused = sum(job.paused_by_others > 0 for job in jobs)
    spread = sum(job.slowed_by_pauses_alone for job in jobs)
    said = [_pauses_said(paused, spread, len(jobs))]
    if found.empty_s:
        said.append(
            f"At {quantity.count(len(found.empty_s))} more moments no job used a link between switches, the first at "
            f"{found.empty_s[0]:,.0f} s."
        )
    smallest = min(moment.scale for moment in found.moments)
    if smallest < 1:
        said.append(
            f"Times and bytes are scaled down (smallest factor {smallest:g}): queues, headers and the tail of every "
            "round then weigh more than in whole iterations."
        )
    return said


def _pauses_said(paused: int, spread: int, jobs: int) -> str:
    """How many jobs the pause frames of others reach, and whom these slow down although flows do not.

    >>> _pauses_said(0, 0, 5)
    'No job is paused because of other jobs.'
    >>> _pauses_said(3, 1, 5)
    'Pause frames caused by other jobs reach 3 of 5 jobs; 1 takes over 1 % longer for them, unlike as flows.'
    """
    if not paused:
        return "No job is paused because of other jobs."
    longer = f"{quantity.count(spread)} {'takes' if spread == 1 else 'take'} over 1 % longer for them, unlike as flows"
    return (
        f"Pause frames caused by other jobs reach {quantity.count(paused)} of {quantity.count(jobs)} jobs; "
        f"{longer if spread else 'none takes over 1 % longer for them alone'}."
    )


def points_chart(found: Agreement) -> Chart:
    """Every job at every moment: the replay and flows over packets."""
    return Chart(
        "points",
        "Iterations of every job at every moment by the replay and as flows, against packets",
        (View("time added by the network", _points(found)),),
        (
            Swatch("by the replay", REPLAY, "circle", group="replay"),
            Swatch("as flows", FLOWS, "circle", group="flow"),
        ),
        caption="What the network adds to an iteration, in percent of one on a quiet network. Points on the line agree "
        "with packets; below it, packets take longer.",
    )


def _points(found: Agreement) -> Figure:
    jobs = [(moment, job) for moment in found.moments for job in moment.over_links]
    most = max(max(job.packet, job.replay, job.flow) - 1 for _, job in jobs) or 0.01
    line = {
        "type": "scatter", "mode": "lines", "name": "agree", "x": [0, most], "y": [0, most], "hoverinfo": "skip",
        "line": {"color": palette.INK.light, "width": 1, "dash": "dot"},
    }  # fmt: skip
    return {
        "data": [line, *(_dots(kind, colour, jobs) for kind, colour in (("flow", FLOWS), ("replay", REPLAY)))],
        "layout": layout(
            420,
            xaxis=value_axis("added packet by packet", [most], _share, log=False),
            yaxis=value_axis("added by the replay, as flows", [most], _share, log=False),
        ),
    }


def _share(part: float) -> str:
    return f"{100 * part:.3g} %"


def _dots(kind: str, colour: palette.Colour, jobs: Sequence[tuple[MomentCompared, JobCompared]]) -> Figure:
    values = [getattr(job, kind) for _, job in jobs]
    # Rings around dots: both are seen where they agree.
    marker = {"symbol": "circle-open", "size": 11, "line": {"width": 2}} if kind == "flow" else {"size": 7}
    return {
        "type": "scatter", "mode": "markers", "name": kind, "legendgroup": kind, "cliponaxis": False,
        "x": [job.packet - 1 for _, job in jobs], "y": [value - 1 for value in values],
        "marker": {"color": colour.light, "opacity": 0.8} | marker,
        "text": [
            f"{plain(job.name)} at {moment.at_s:,.0f} s: {value:.3f}, packets {job.packet:.3f}"
            for (moment, job), value in zip(jobs, values, strict=True)
        ],
        "hoverinfo": "text",
    }  # fmt: skip


def _reading(found: Agreement) -> list[str]:
    notes = [
        f"Policy {found.question.policy.name}: {found.question.policy.about}.",
        "Replay: links in equal parts, the mean over all offsets of the jobs' iterations. Flows: the offsets of the "
        "moment, max-min fair rates, round by round. Packets: headers, queues, congestion control and pauses, too.",
    ]
    if found.question.port is not None:
        notes.append(
            "Other hash: packet by packet on the paths that MurmurHash3 of addresses and ports gives at every switch."
        )
    return notes
