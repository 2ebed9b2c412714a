"""What `ropewalk plan` shows on the screen about the best strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk import units
from ropewalk.cli.screen import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ropewalk.planner.answer import PlannerAnswer, Strand
    from ropewalk.planner.estimate import QuickEstimate
    from ropewalk.planner.explain import Explanation

SHOWN = 8
"""Candidates in the table."""


def print_answer(answer: PlannerAnswer, explanations: tuple[Explanation, ...], *, hint: bool) -> None:
    """The verdict, the best candidates, the gain of each choice, and how much is left."""
    from ropewalk.report.planner_words import NOTICED

    say = console().print
    for line in verdict(answer):
        say(line, style="bold", soft_wrap=True)
    say(_candidates(answer))
    say(_strands(answer))
    if little := [one.name for one in answer.strands[:-1] if not _is_noticed(one)]:
        say(f"each below {units.show_percent(NOTICED)} alone: {', '.join(little)}", soft_wrap=True)
    costs = f"costs: {answer.training.cost_source}"
    expected = f"interval: {answer.training.expected.said()}"
    for line in (costs, expected, *_bound(answer), *_search(answer), *_frameworks(answer)):
        say(line, soft_wrap=True)
    for remark in answer.remarks:
        say(f"note: {remark}", style="yellow", soft_wrap=True)
    _explain(explanations)
    if hint:
        say(
            "add --plan plan.json to keep it (then `ropewalk export plan.json --to run --output job`), "
            "--page plan.html for charts, --explain 'tp 4' for any other strategy",
            style="dim",
            soft_wrap=True,
        )


def _explain(explanations: Sequence[Explanation]) -> None:
    say = console().print
    for one in explanations:
        say(f"why not {one.asked}?", style="bold", soft_wrap=True)
        for sentence in one.sentences:
            say(sentence, soft_wrap=True)


def print_estimate(found: QuickEstimate, explanations: Sequence[Explanation] = ()) -> None:
    """The estimate in two sentences, the strategies next to it, and what was asked about others."""
    from rich import box
    from rich.table import Table

    from ropewalk.device.held import device_in_words

    say, best, place = console().print, found.best, found.question.cluster
    gpus = f"{place.gpus} x {device_in_words(place.device)}"
    say(
        f"{found.question.model} on {gpus}, batch {found.question.batch}: about {units.show_seconds(best.seconds)} per "
        f"step{'' if found.mfu is None else f', {units.show_percent(found.mfu)} MFU'}: {best.strategy.said()}",
        style="bold", soft_wrap=True,
    )  # fmt: skip
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("strategy", overflow="fold")
    for name in ("step", "vs. best", "memory"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in (best, *found.others):
        table.add_row(
            one.strategy.said(), ("" if one.simulated else "≥ ") + units.show_seconds(one.seconds),
            units.show_percent(one.seconds / best.seconds - 1, signed=True), units.show_size(one.memory_bytes),
        )  # fmt: skip
    say(table)
    _explain(explanations)
    say(
        f"an estimate: the best by bound of {found.fit:,} common strategies that fit (of {found.possible:,}), the "
        "first "
        "few simulated; without --quick the whole space is searched and the best strategy is proved",
        style="dim", soft_wrap=True,
    )  # fmt: skip


def verdict(answer: PlannerAnswer) -> list[str]:
    """The answer in two sentences."""
    from ropewalk.device.held import device_in_words

    found, best = answer.training.statistics, answer.best
    place = answer.question.cluster
    rate = f"{found.tokens_per_s:,.0f} tokens/s" if found.tokens_per_s else f"{found.samples_per_s:,.0f} samples/s"
    mfu = "" if found.mfu is None else f", {units.show_percent(found.mfu)} MFU"
    gain = answer.plain.seconds / best.seconds
    gpus = f"{place.gpus} x {device_in_words(place.device)}"
    return [
        f"{answer.question.model} on {gpus}, batch {answer.question.batch}: {best.said()}",
        f"{units.show_seconds(best.seconds)} per step, {rate}{mfu}, {units.show_size(best.memory_bytes)} of "
        f"{units.show_size(answer.capacity_bytes)} on the fullest GPU; {gain:.2f}x as fast as the baseline",
    ]


def _candidates(answer: PlannerAnswer) -> Table:
    """The best candidates by bound, and the baseline."""
    import numpy as np
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("strategy", overflow="fold")
    for name in ("step", "vs. best", "memory"):
        table.add_column(name, justify="right", no_wrap=True)
    priced = answer.priced
    bounds = np.where(np.isfinite(answer.simulated_s), answer.simulated_s, answer.bounds_s)
    fit = np.flatnonzero(np.isfinite(bounds))
    order = fit[np.argsort(bounds[fit], kind="stable")][: SHOWN * 4]
    seconds = np.where(np.isfinite(answer.simulated_s[order]), answer.simulated_s[order], priced.replay(order))
    workload = answer.training.workload
    rows = sorted(zip(seconds.tolist(), order.tolist(), strict=True))[:SHOWN]
    for time, at in rows:
        sign = "" if np.isfinite(answer.simulated_s[at]) else "≥ "
        memory = float(priced.memory_bytes[at])
        table.add_row(
            priced.strategy(at, workload).said(), sign + units.show_seconds(time),
            units.show_percent(time / answer.best.seconds - 1, signed=True), units.show_size(memory),
        )  # fmt: skip
    plain = answer.plain
    table.add_section()
    table.add_row(
        f"baseline: {plain.said()}", units.show_seconds(plain.seconds),
        units.show_percent(plain.seconds / answer.best.seconds - 1, signed=True), units.show_size(plain.memory_bytes),
    )  # fmt: skip
    return table


def _strands(answer: PlannerAnswer) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("choice, alone over the baseline", overflow="fold")
    table.add_column("gain", justify="right", no_wrap=True)
    table.add_column("with", overflow="fold")
    for one in answer.strands:
        if one is answer.strands[-1] or _is_noticed(one):
            table.add_row(f"{one.name}: {one.about}", f"{one.gain:.3f}x", one.option.said())
    return table


def _is_noticed(strand: Strand) -> bool:
    from ropewalk.report.planner_words import NOTICED

    return abs(strand.gain - 1) >= NOTICED


def _bound(answer: PlannerAnswer) -> list[str]:
    bound = answer.bound
    ladder = ", ".join(f"{rung.name} {units.show_seconds(rung.seconds)}" for rung in bound.ladder)
    uniform = "cannot be beaten" if bound.complete else f"takes at least {units.show_seconds(bound.uniform_s)}"
    return [
        f"bound: no strategy takes less than {units.show_seconds(bound.seconds)}, whatever it chooses; the best is "
        f"{units.show_percent(bound.gap(answer.best.seconds))} above it. With rings and even cuts "
        f"{units.show_seconds(bound.uniform_s)} {uniform}",
        f"proof: {bound.proof}",
        f"lower bounds, each with one more constraint: {ladder}",
    ]


def _search(answer: PlannerAnswer) -> list[str]:
    counts = answer.counts
    lines = [
        f"search: {counts.possible:,} possible, {counts.runnable:,} runnable, {counts.fit:,} fit and were priced, "
        f"{counts.replayed:,} replayed, {counts.simulated:,} simulated"
        + ("" if answer.bound.complete else "; stopped early, so another strategy may be faster")
    ]
    if answer.nearest:
        near = answer.nearest[0]
        lines.append(f"closest to fitting: {near.strategy.said()}, {units.show_size(near.memory_bytes)}")
    return lines


def _frameworks(answer: PlannerAnswer) -> list[str]:
    can = [name for name, why in answer.frameworks.items() if why is None]
    return [f"runs on: {', '.join(can)}" if can else "no framework runs it as is (--allow unrunnable)"]
