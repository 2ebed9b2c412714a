"""The page of a collective: how fast it can be, what limits it, what reaches it, and what others would do."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

from ropewalk.collectives.forest import AllReduceForest
from ropewalk.report import colours, quantity
from ropewalk.report.collective_charts import bandwidth_chart, candidates, time_chart
from ropewalk.report.cut_drawing import draw_cut
from ropewalk.report.page import render
from ropewalk.report.tree_drawing import MOST_RANKS_DRAWN, draw_trees
from ropewalk.synthesis import CollectiveAnswer
from ropewalk.synthesis.words import gigabytes, limit_of

if TYPE_CHECKING:
    from ropewalk.execute import RunReport

MOST_TREES_LISTED = 200

COLLECTIVE_NAMES = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
}
"""As people say them, where that differs from the command line."""


@dataclass(frozen=True)
class TreeRow:
    """One tree of the table."""

    does: str
    root: str
    rate: Fraction
    depth: int


def collective_page(answer: CollectiveAnswer, report: RunReport | None = None) -> str:
    """One self-contained HTML page for a collective on a fabric, with what came of running it where it was run.

    >>> from ropewalk.fabric import Torus
    >>> from ropewalk import synthesis
    >>> from ropewalk.synthesis import CollectiveQuestion
    >>> answer = synthesis.answer(CollectiveQuestion("allgather", Torus((3, 3), bandwidth=1e9).build(), compare=False))
    >>> "The optimum of an all-gather over 9 ranks of torus:3x3 is 4.5" in collective_page(answer)
    True
    """
    rows, limit = candidates(answer), limit_of(answer)
    charts = [bandwidth_chart(answer)] if rows else []
    if answer.by_size:
        charts.append(time_chart(answer))
    members = set(answer.network.members.tolist())
    forest = None if answer.made is None else answer.made.forest
    return render(
        "collective.html",
        title=f"{spoken(answer)} on {answer.fabric.name}",
        charts=charts,
        headline=headline(answer),
        lead=comparison_in_words(answer),
        facts=_facts(answer),
        limit=limit,
        limit_words=(limit.sentence[0].upper() + limit.sentence[1:]).replace("->", "\u2060→\u2060"),
        fabric=answer.fabric,
        relays=len(members) < answer.fabric.hosts,
        drawing=draw_cut(answer.fabric, members, limit.cut),
        rows=rows,
        left_out=[(colours.name_of_logical(one.name), one.reason) for one in answer.alternatives if one.reason],
        best=float(answer.optimum.algbw),
        answer=answer,
        name=colours.name_of_logical,
        pictures=[] if forest is None else draw_trees(forest),
        trees=tree_rows(answer),
        most_trees=MOST_TREES_LISTED,
        most_ranks=MOST_RANKS_DRAWN,
        report=report,
        notes=[*(f"{note[0].upper()}{note[1:]}." for note in answer.notes), *_reading(answer)],
        quantity=quantity,
    )


def spoken(answer: CollectiveAnswer) -> str:
    return COLLECTIVE_NAMES.get(answer.question.collective, answer.question.collective)


def headline(answer: CollectiveAnswer) -> str:
    """`The optimum of an all-reduce over 16 ranks of dgx-a100:2 is 173.3 GB/s; a schedule of 64 trees reaches it`."""
    name = spoken(answer)
    article = "an" if name[0] in "aeiou" else "a"
    where = f"{article} {name} over {quantity.count(answer.ranks)} ranks of {answer.fabric.name}"
    said = f"The optimum of {where} is {quantity.gigabytes(float(answer.optimum.algbw))}"
    if answer.made is None:
        return f"{said} with in-network multicast and reduction"
    if answer.algbw == answer.optimum.algbw:
        trees = answer.made.trees
        return f"{said}; a schedule of {f'{quantity.count(trees)} trees' if trees else answer.made.shape} reaches it"
    reached = float(answer.algbw) / float(answer.optimum.algbw)
    return f"{said}; {colours.name_of_logical(answer.made.name)} reaches {quantity.percent(reached)} of it"


def comparison_in_words(answer: CollectiveAnswer) -> str:
    """What a library would reach, and what to use for small buffers."""
    rivals = [row for row in candidates(answer) if not row.made_for_it]
    said = []
    if rivals:
        best, ratio = rivals[0], float(answer.algbw) / rivals[0].algbw
        part = quantity.percent(best.algbw / float(answer.optimum.algbw))
        behind = f": {quantity.times(ratio)} slower" if ratio > 1.005 else ""
        others = "other schedules" if answer.made is not None else "schedules without it"
        said.append(
            f"Of {len(rivals)} {others} on the same fabric, {best.words} is best, with {part} of the optimum{behind}."
        )
    small = [at for at in answer.by_size if answer.made is not None and at.name != answer.made.name]
    if small:
        names = list(dict.fromkeys(colours.name_of_logical(at.name) for at in small))
        said.append(
            f"Up to {quantity.size(small[-1].size_bytes)} {' or '.join(names)} is faster, with fewer start-ups."
        )
    return " ".join(said) or "No comparison was made."


def _facts(answer: CollectiveAnswer) -> list[tuple[str, str]]:
    asked, made = answer.question, answer.made
    facts = [
        ("Optimum", gigabytes(answer.optimum.algbw)),
        ("1/x*", f"{answer.inverse_rate} s/GB" if answer.optimum.exact else f"{float(answer.inverse_rate):.6g} s/GB"),
        ("Proof", answer.optimum.method),
    ]
    if made is not None:
        facts += [
            ("Schedule", f"{colours.name_of_logical(made.name)}, {made.shape}"),
            ("Achieved bandwidth", gigabytes(made.algbw)),
            (quantity.buffer(asked.size_bytes), quantity.seconds(answer.seconds)),
        ]
    if answer.segments > 1:
        facts.append(("Segments", quantity.count(answer.segments)))
    if answer.guarantee is not None:
        facts.append(("Proven guarantee", f"at least {quantity.percent(float(answer.guarantee))} of the optimum"))
    if answer.simulated_algbw is not None:
        facts.append(("Simulated", f"{quantity.gigabytes(answer.simulated_algbw)} without start-up latency"))
    if asked.group is not None:
        facts.append(("Relays", quantity.count(answer.fabric.hosts - answer.ranks)))
    facts.append(("Start-up latency", quantity.seconds(asked.start_up_s)))
    return facts


def tree_rows(answer: CollectiveAnswer) -> list[TreeRow]:
    """The first trees, in the order of the schedule."""
    forest = None if answer.made is None else answer.made.forest
    if forest is None:
        return []
    parts = [forest.reducing, forest.spreading] if isinstance(forest, AllReduceForest) else [forest]
    return [
        TreeRow("reduces" if part.network.backwards else "spreads", names[tree.root], tree.rate, tree.depth)
        for part in parts
        for names in (part.network.fabric.node_names,)
        for tree in islice(part.trees, MOST_TREES_LISTED // len(parts))
    ]


def _reading(answer: CollectiveAnswer) -> list[str]:
    """How to read what is on the page; only what occurs there."""
    notes = [
        "Bandwidth is size over time, where the size is the whole buffer: what every rank ends with, or starts with in "
        "a reduce-scatter; in an all-to-all it is the number of ranks times what one sends to another.",
        "1/x* is the time for every rank to move one gigabyte of its own data; with a root, of the whole buffer.",
    ]
    if answer.made is not None and answer.made.trees:
        notes.append(
            "A buffer is split over the trees by rate, and into segments that are pipelined from branch to branch; "
            "more segments keep links busier but cost more start-up latency."
        )
    return notes
