"""`ropewalk plan --network a,b,c` and `--target`: the best strategy on each of several networks, beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.idle_options import given, refuse
from ropewalk.cli.lists import not_empty, split_fabrics
from ropewalk.cli.plan_options import NetworkOptions, Outputs, PortOptions
from ropewalk.cli.screen import console, print_whole, shown_progress, typed, write_page
from ropewalk.documents import json_text

NOTICEABLE = 5e-4
"""Parts of a bound below which a step takes just that."""

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.planner.comparison import NetworkComparison
    from ropewalk.planner.networks import NetworksAnswer, OnNetwork
    from ropewalk.planner.question import PlannerQuestion


def compare_networks(
    context: typer.Context, question: PlannerQuestion, ports: PortOptions, networks: NetworkOptions, engine: str,
    outputs: Outputs,
) -> None:  # fmt: skip
    """Plan on every network, write the plan for the one to take, print the table or the JSON."""
    from ropewalk.engines import engine_named
    from ropewalk.hardware.networks import OWN
    from ropewalk.hardware.prices import DEFAULT_PRICES
    from ropewalk.planner.networks import NetworksQuestion, answer_on_networks

    names = (OWN,) if networks.network is None else not_empty(split_fabrics(networks.network), "--network")
    if OWN not in names:
        refuse(
            given(context, ("fabric", "rails")), f"name the network in --network, or {OWN} to compare it with others"
        )
    asked = NetworksQuestion(question, names, ports.prices or DEFAULT_PRICES, networks.target)
    workers = engine_named(engine)
    with shown_progress() as progress:
        answer = answer_on_networks(asked, progress, workers)
    if outputs.plan is not None:
        from ropewalk.planner.planned import plan_of
        from ropewalk.plans import write_plan

        write_plan(plan_of(answer.best.planned), outputs.plan)
        typer.echo(f"plan for {answer.best.name}: {outputs.plan}", err=True)
    if outputs.page is not None:
        from ropewalk.report.planner import planner_page

        page = planner_page(answer.best.planned, networks=answer.comparison, command=typed())
        write_page(outputs.page, page)
    if outputs.json:
        typer.echo(json_text({"model": question.model} | answer.as_json()), nl=False)
    else:
        print_networks(answer)


def print_networks(answer: NetworksAnswer) -> None:
    """The table, the verdict, and what the numbers rest on."""
    say = console().print
    say(answer.comparison.verdict, style="bold", soft_wrap=True)
    print_whole(_table(answer))
    compared = answer.comparison
    say(f"cost of the {compared.dollars_of} (price list {compared.prices})", soft_wrap=True)
    say(f"costs: {answer.best.planned.training.cost_source}", soft_wrap=True)
    for one in answer.found:
        for line in _remarks(one):
            say(f"{one.name}: {line}", soft_wrap=True)
    for line in answer.missed:
        say(f"left out: {line}", style="yellow", soft_wrap=True)


def _remarks(one: OnNetwork) -> list[str]:
    from ropewalk.hardware.bill import network_price

    note, best = network_price(one.cluster).note, one.planned.best.seconds
    bound, wired = one.planned.bound, " on any wiring of its ports" if one.planned.question.designed else ""
    left = f"no strategy takes less than {units.show_seconds(bound.seconds)}{wired}, and this one is "
    left += f"{units.show_percent(bound.gap(best))} above it" if bound.gap(best) >= NOTICEABLE else "no slower"
    return [left, *([note] if note else []), *([one.reached.said] if one.reached is not None else [])]


def _table(answer: NetworksAnswer) -> Table:
    from rich import box
    from rich.table import Table

    compared, servers = answer.comparison, {one.name: one.cluster.equal.count for one in answer.found}
    sized = answer.question.target is not None
    counted = compared.counted
    table = Table(box=box.SIMPLE_HEAD)
    heads = ("network", *(["servers"] if sized else []), "step", f"vs. {compared.reference}", counted, "MFU", "cost",
             f"{counted} per $", "bandwidth per GPU", "comparison", "strategy")  # fmt: skip
    for head in heads:
        table.add_column(
            head, justify="left" if head in ("network", "comparison", "strategy") else "right", no_wrap=True
        )
    for cells in _cells(compared, counted):
        name = cells[0]
        table.add_row(name, *([str(servers[name])] if sized else []), *cells[1:])
    return table


def _cells(compared: NetworkComparison, counted: str) -> list[list[str]]:
    rows = []
    for row in compared.rows:
        result = row.result
        rate = result.tokens_per_s if counted == "tokens/s" else result.samples_per_s
        rows.append([
            result.name, units.show_seconds(result.step_time_s), f"{row.slowdown:.2f} x", f"{rate or 0.0:,.0f}",
            "" if result.mfu is None else units.show_percent(result.mfu), f"${result.price.total:,.0f}",
            f"{row.per_dollar:.3g}", units.show_bandwidth(result.hosts.per_gpu),
            "" if result.name == compared.reference else row.kind, result.strategy,
        ])  # fmt: skip
    return rows
