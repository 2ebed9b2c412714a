"""The page of a search for the best strategy: the verdict, the bound, all candidates, what every strand is worth."""

from __future__ import annotations

from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.comparison import NetworkComparison
from ropewalk.planner.plain import ABOUT
from ropewalk.report import planner_words, quantity
from ropewalk.report.design_wiring import draw_wiring
from ropewalk.report.page import render
from ropewalk.report.planner_charts import ladder_chart, strand_chart
from ropewalk.report.planner_networks import network_chart, network_lines
from ropewalk.report.planner_points import point_cloud
from ropewalk.report.rank_groups import one_per_stage
from ropewalk.report.step_timeline import StepTimeline, step_timeline

MOST_BARS = 10_000
"""Of each of two timelines, beside the points of all candidates: the page stays under 1 MB."""


def planner_page(answer: PlannerAnswer, *, networks: NetworkComparison | None = None, command: str = "") -> str:
    """One self-contained HTML page for the answer of a search; `command` is what was typed to ask for it.

    With `networks`, the answer is that on the network to take, and the others stand beside it.
    """
    workload, designed = answer.training.workload, answer.training.question.network.designed
    return render(
        "planner.html",
        title=f"{workload.name} on {quantity.count(answer.training.gpus)} GPUs: the best strategy",
        charts=[ladder_chart(answer), strand_chart(answer), *([network_chart(networks)] if networks else [])],
        networks=networks,
        network_lines=network_lines(networks) if networks else [],
        headline=planner_words.headline(answer),
        lead=planner_words.bound_in_words(answer),
        numbers=planner_words.numbers(answer),
        facts=planner_words.facts(answer),
        proof=planner_words.proof_in_words(answer),
        where_to_gain=planner_words.where_to_gain(answer),
        ladder=planner_words.ladder_rows(answer),
        found=planner_words.FOUND,
        cloud=point_cloud(answer),
        answer=answer,
        about_plain=ABOUT,
        strands_in_words=planner_words.strands_in_words(answer),
        times=quantity.times,
        timelines=_timelines(answer),
        counts=planner_words.counts(answer),
        nearest=[
            (one.strategy.said(), one.memory_bytes, one.memory_bytes - answer.capacity_bytes) for one in answer.nearest
        ],
        frameworks=planner_words.frameworks(answer),
        drawing=None if designed is None else draw_wiring(designed.wiring),
        command=command,
        notes=[*map(planner_words.sentence, answer.remarks), *answer.training.notes, *planner_words.reading()],
    )


def _timelines(answer: PlannerAnswer) -> list[tuple[str, StepTimeline]]:
    """The best step and the plain one, to the same scale."""
    both = [("best", "The best strategy", answer.training)]
    if answer.plain.strategy != answer.best.strategy:
        both.append(("plain", "The baseline", answer.plain_training))
    span = max(training.run.makespan for _, _, training in both)
    found = []
    for key, title, training in both:
        groups = one_per_stage(training.stage_of_rank)
        drawn = step_timeline(training.run, groups, key=f"timeline-{key}", span_s=span, most=MOST_BARS)
        if drawn is not None:
            taken = quantity.seconds(training.statistics.step_time_s)
            found.append((f"{title}, {taken}: {training.strategy.said()}", drawn))
    return found
