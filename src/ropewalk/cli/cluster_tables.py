"""Tables of a comparison of policies on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ropewalk.cli.screen import console, print_whole
from ropewalk.units import show_percent

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.tenancy.compared import Comparison


LEGEND = (
    "jct, jrt, jwt: mean completion, running and waiting time of jobs; p99: 99th percentile; fair: Jain's index; "
    "contended: share of flows; scaling: scaling factor; lost: to the network and idle GPUs; no spines: failed starts"
)


def print_tables(found: Comparison, gpu_hour: float) -> None:
    """Every policy; the network and scheduling apart; slowdown by size."""
    print_whole(policies_table(found, gpu_hour))
    console().print(LEGEND, style="dim", soft_wrap=True)
    parts = parts_table(found)
    if parts is not None:
        console().print(
            "delay against packed servers on an ideal network, split into network and scheduling; and the slowdown "
            "of jobs under the same schedule:",
            soft_wrap=True,
        )
        print_whole(parts)
    for what, head, by in (("job size", "GPUs", "by_size"), ("model", "model", "by_model")):
        slowed = groups_table(found, head, by)
        if slowed is not None:
            console().print(f"slowdown by {what}:", soft_wrap=True)
            print_whole(slowed)


def policies_table(found: Comparison, gpu_hour: float) -> Table:
    """Means over all seeds; the best that anybody can have is bold."""
    from ropewalk.report import quantity
    from ropewalk.report.cluster import has_deadlines
    from ropewalk.report.cluster_verdict import lost_money, time_with_spread, with_spread
    from ropewalk.report.cluster_words import duration

    dated = has_deadlines(found)
    heads = (
        "jct", "p99 jct", "jrt", "jwt", "slowdown", "p99", "fair", "contended", "gpus", "scaling", "lost GPU-h",
        "lost $", "no spines", *(["missed"] if dated else []),
    )  # fmt: skip
    table = _table("policy", heads)
    for policy in found.policies:
        if found.starts_none(policy.name):
            table.add_row(policy.name, *("–" for _ in heads))
            continue
        of = {name: found.spread(policy.name, name) for name in found.seeds[0].policies[policy.name]}
        lost = of["lost_to_the_network_gpu_h"].mean + of["lost_to_fragmentation_gpu_h"].mean
        table.add_row(
            policy.name,
            time_with_spread(of["mean_jct_s"]),
            *(duration(of[name].mean) for name in ("p99_jct_s", "mean_jrt_s", "mean_jwt_s")),
            with_spread(of["mean_slowdown"]),
            f"{of['p99_slowdown'].mean:.2f}",
            f"{of['fairness'].mean:.2f}",
            *(show_percent(of[name].mean) for name in ("contention_ratio", "gpu_utilisation")),
            f"{of['scaling_factor'].mean:.3f}",
            quantity.count(round(lost)),
            quantity.count(round(lost_money(found, policy.name, gpu_hour))),
            f"{of['fragmentation_events'].mean:.4g}",
            *([f"{of['missed_deadlines'].mean:.4g}"] if dated else []),
            style="bold" if policy.name == found.verdict.best else None,
        )
    return table


def parts_table(found: Comparison) -> Table | None:
    """What each policy is made of; None where it was not asked."""
    from ropewalk.report.cluster_verdict import parts_rows, schedule_rows

    rows, schedule = parts_rows(found), {row.routing: row for row in schedule_rows(found)}
    if not rows:
        return None
    table = _table("policy", ("network", "scheduling", "both", "same schedule", "its p99"))
    routing = {policy.name: policy.routing for policy in found.policies if policy.placement == "packed"}
    for row in rows:
        same = schedule.get(routing.get(row.policy, ""))
        cells = ("–", "–") if same is None else (same.slowdown, same.tail)
        table.add_row(row.policy, row.network, row.scheduling, row.both, *cells)
    return table


def groups_table(found: Comparison, head: str, by: str) -> Table | None:
    """Slowdown by size or model under every policy that slows anybody down; None where none does."""
    from ropewalk.report.cluster_verdict import group_rows

    names, rows = group_rows(found, by)
    felt = [at for at in range(len(names)) if any(cells[at] not in ("1.000", "–") for _, _, cells in rows)]
    if not felt:
        return None
    table = _table(head, ("jobs", *(names[at] for at in felt)))
    for name, jobs, cells in rows:
        table.add_row(name, str(jobs), *(cells[at] for at in felt))
    return table


def _table(first: str, others: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in (first, *others):
        table.add_column(name, justify="left" if name == first else "right", no_wrap=True)
    return table
