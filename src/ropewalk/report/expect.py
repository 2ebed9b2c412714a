"""The page of what a cluster should show, or of what it shows and what is the matter with it."""

from __future__ import annotations

from ropewalk.expect.answer import ExpectAnswer
from ropewalk.expect.words import cause_in_words, explanation, headline, who_in_words
from ropewalk.report import quantity
from ropewalk.report.cut_drawing import draw_links
from ropewalk.report.drawing import Drawing
from ropewalk.report.expect_charts import expected_chart, measured_chart
from ropewalk.report.page import render

MOST_LISTED = 2000


def expect_page(answer: ExpectAnswer) -> str:
    """One self-contained HTML page.

    >>> from ropewalk.expect.question import ExpectQuestion
    >>> from ropewalk.expect.study import answer
    >>> from ropewalk.hardware import read_cluster
    >>> one = ExpectQuestion(read_cluster("dgx-h100:1"), sizes=(1 << 20,))
    >>> "Expected nccl-tests results on 8 GPUs" in expect_page(answer(one))
    True
    """
    cluster, found = answer.question.cluster, answer.diagnosis
    expected = f"Expected nccl-tests results on {quantity.count(cluster.gpus)} GPUs"
    title = expected if found is None else _capital(headline(found))
    measured = [] if found is None else [(one, row) for one in found.series for row in one.rows]
    measured.sort(key=lambda pair: pair[1].place)
    return render(
        "expect.html",
        title=f"{title}: {cluster.said}",
        charts=[expected_chart(answer) if found is None else measured_chart(found, answer.names)],
        headline=title,
        lead=cluster.said,
        answer=answer,
        found=found,
        sentences=[] if found is None else [f"{_capital(line)}." for line in explanation(found)],
        causes=[] if found is None else [(_capital(cause_in_words(one)), one.score) for one in found.causes],
        measured=[(one, row, who_in_words(one, answer.names)) for one, row in measured[:MOST_LISTED]],
        left_out=max(0, len(measured) - MOST_LISTED),
        drawing=_drawing(answer),
        quantity=quantity,
    )


def _drawing(answer: ExpectAnswer) -> Drawing | None:
    """The network with the guilty part, where a part is guilty."""
    found = answer.diagnosis
    if found is None or found.best is None or not found.explains or not found.best.links:
        return None
    return draw_links(answer.question.cluster.fabric(), found.best.links, found.best.name)


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
