"""Networks beside each other on the page of a search: bars of time, cost and throughput for the money, and a table."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.planner.comparison import NetworkComparison
from ropewalk.report import colours, quantity
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.design_charts import money
from ropewalk.report.ranking import ranking


@dataclass(frozen=True)
class NetworkLine:
    """One row of the table."""

    name: str
    seconds: float
    slowdown: str
    throughput: str
    mfu: str
    cost: str
    per_dollar: str
    bandwidth: str
    kind: str
    strategy: str
    taken: bool
    """Is it the one to take?"""


def network_lines(compared: NetworkComparison) -> list[NetworkLine]:
    """All networks, the fastest first."""
    return [
        NetworkLine(
            row.result.name, row.result.step_time_s, quantity.times(row.slowdown), quantity.rate(row.result.throughput),
            "" if row.result.mfu is None else quantity.percent(row.result.mfu), money(row.result.price.total),
            f"{row.per_dollar:.3g}", quantity.bandwidth(row.result.hosts.per_gpu),
            "the reference" if row.result.name == compared.reference else row.kind, row.result.strategy,
            row.result.name == compared.pick,
        )
        for row in compared.rows
    ]  # fmt: skip


def network_chart(compared: NetworkComparison) -> Chart:
    """Step time, cost, and throughput per dollar of every network."""
    results = [row.result for row in compared.rows]
    names = [result.name for result in results]
    hovers = [f"<b>{plain(result.name)}</b>: {plain(result.strategy)}" for result in results]
    seconds, dollars = [one.step_time_s for one in results], [one.price.total for one in results]
    value = [row.per_dollar for row in compared.rows]
    return Chart(
        "networks",
        f"Step time and cost of {len(names)} networks, each with its own best strategy",
        (
            View("step time", ranking(
                names, seconds, [quantity.seconds(one) for one in seconds], hovers, quantity.seconds, compared.pick)),
            View("cost of the network", ranking(
                names, dollars, [money(one) for one in dollars], hovers, money, compared.pick)),
            View(f"{compared.counted} per dollar ({compared.dollars_of})", ranking(
                names, value, [f"{one:.3g}" for one in value], hovers, lambda one: f"{one:.3g}", compared.pick)),
        ),
        (Swatch("recommended", colours.ACCENT), Swatch("others", colours.OTHER)),
        choose="Bars",
    )  # fmt: skip
