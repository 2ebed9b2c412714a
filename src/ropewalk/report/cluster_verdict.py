"""What a comparison of policies says, in sentences and in rows: the same on a screen and on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ropewalk.report import quantity
from ropewalk.report.cluster_words import duration
from ropewalk.tenancy.compared import IDEAL, NEARLY, REFUSED, Comparison
from ropewalk.tenancy.spread import Spread

COMMON = "ecmp"
"""What everybody has: differences from it are said, too."""
MOST_NAMED = 3
"""Policies in a headline that are as fast as the best."""
LEAST = 5e-5
"""A half-width below this would be printed as 0.00 %."""


def headline(found: Comparison) -> str:
    """The best policy that anybody can have, the one behind it, and whether the difference is more than the spread."""
    verdict, jobs = found.verdict, len(found.first.timelines[0].jobs)
    if found.starts_none(verdict.best):
        return f"No job can ever start under {_some([policy.name for policy in found.policies])}"
    if verdict.runner_up is None or verdict.gain is None:
        mean = found.spread(verdict.best, "mean_jct_s")
        return f"{quantity.count(jobs)} jobs complete in {duration(mean.mean)} on average under {verdict.best}"
    gain, count = verdict.gain, len(found.seeds)
    if verdict.as_fast:
        return f"Jobs take as long under {verdict.best} as under {_some(verdict.as_fast)}, and no policy is faster"
    if count == 1:
        return (
            f"Jobs complete soonest under {verdict.best}, {quantity.percent(gain.mean)} sooner than under "
            f"{verdict.runner_up} (one seed, so no confidence interval)"
        )
    if verdict.is_level:
        change = "sooner" if gain.mean >= 0 else "later"
        return (
            f"{verdict.best} and {verdict.runner_up} are tied: jobs complete {percent(gain, absolute=True)} {change} "
            f"under the first, within the spread of {count} seeds"
        )
    return (
        f"Jobs complete soonest under {verdict.best}, {percent(gain)} sooner than under {verdict.runner_up}: more than "
        f"the spread of {count} seeds"
    )


def _some(names: Sequence[str]) -> str:
    """The first of many names.

    >>> _some(["source"]), _some(["source", "vclos"]), _some(["a", "b", "c", "d", "e"])
    ('source', 'source and vclos', 'a, b, c and 2 more')
    """
    shown = [*names[:MOST_NAMED], *([f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else [])]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def not_ranked(found: Comparison) -> str | None:
    """Policies under which some jobs can never start: means over different jobs are not compared."""
    names = found.verdict.unranked
    if not names:
        return None
    jobs = len(found.first.timelines[0].jobs) + len(found.first.timelines[0].refused)
    told = [f"{name} ({found.spread(name, REFUSED).mean:.4g} of {quantity.count(jobs)} jobs)" for name in names]
    return f"Not ranked, because some jobs can never start under them: {', '.join(told)}."


def against_common(found: Comparison) -> str | None:
    """The best policy compared with ECMP and with the ideal network, if they were replayed."""
    best, names = found.verdict.best, {policy.name for policy in found.policies}
    differs, equals = [], []
    said = found.verdict.runner_up == COMMON
    if COMMON in names and best != COMMON and not said and found.starts_as_many(best, COMMON):
        gain = found.gain(best, COMMON)
        change = "sooner" if gain.mean >= 0 else "later"
        if abs(gain.mean) < NEARLY and gain.half_width < NEARLY:
            equals.append(f"under {COMMON}")
        else:
            differs.append(f"{percent(gain, absolute=True)} {change} than under {COMMON}{_chance(gain)}")
    if IDEAL in names and best != IDEAL and found.starts_as_many(best, IDEAL):
        behind = found.gain(best, IDEAL)
        if abs(behind.mean) < NEARLY and behind.half_width < NEARLY:
            equals.append("on an ideal network")
        else:
            change = "later" if behind.mean < 0 else "sooner"
            differs.append(f"{percent(behind, absolute=True)} {change} than on an ideal network{_chance(behind)}")
    compared = [*differs, *([f"as fast as {' and '.join(equals)}"] if equals else [])]
    return f"Under {best}, jobs complete {', '.join(compared)}." if compared else None


def _chance(spread: Spread) -> str:
    """What to add to a difference that several seeds do not tell from chance."""
    return " (within the spread)" if len(spread.values) > 1 and not spread.excludes_zero else ""


def percent(spread: Spread, *, absolute: bool = False) -> str:
    """A part with its interval: 3.1 ± 0.4 %."""
    mean = abs(spread.mean) if absolute else spread.mean
    if len(spread.values) < 2:
        return quantity.percent(mean)
    if mean and spread.half_width < LEAST:
        return f"{_digits(100 * mean)} %"
    return f"{_digits(100 * mean)} ± {_digits(100 * spread.half_width)} %"


def signed(spread: Spread | None) -> str:
    """The same with a sign, or a dash where it is not known."""
    if spread is None:
        return "–"
    sign = "+" if spread.mean > 0 else "−" if spread.mean < 0 else ""
    if abs(spread.mean) < NEARLY / 5 and spread.half_width < NEARLY / 5:
        return "0"
    return sign + percent(spread, absolute=True)


def with_spread(spread: Spread, digits: int = 3) -> str:
    """A plain number with its interval: 1.031 ± 0.004."""
    text = f"{spread.mean:.{digits}f}"
    return text if len(spread.values) < 2 or spread.half_width < 0.5 * 10**-digits else (
        f"{text} ± {spread.half_width:.{digits}f}"
    )  # fmt: skip


def time_with_spread(spread: Spread) -> str:
    """A time with its interval in percent of it: 7.4 h ± 2 %."""
    if len(spread.values) < 2 or not spread.mean or spread.half_width / spread.mean < 0.0005:
        return duration(spread.mean)
    return f"{duration(spread.mean)} ± {_digits(100 * spread.half_width / spread.mean)} %"


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 9.95 else f"{value:.1f}" if abs(value) >= 0.095 else f"{value:.2f}"


@dataclass(frozen=True)
class PartsRow:
    """What a policy is made of."""

    policy: str
    network: str
    scheduling: str
    both: str


def parts_rows(found: Comparison) -> list[PartsRow]:
    """Later than packed servers on an ideal network, by what makes it so; empty where that was not asked."""
    return [
        PartsRow(
            policy.name,
            signed(found.network_part(policy.name)),
            signed(found.scheduling_part(policy.name)),
            signed(found.both_parts(policy.name)),
        )
        for policy in found.policies
        if found.both_parts(policy.name) is not None
    ]


@dataclass(frozen=True)
class ScheduleRow:
    """What a network does to jobs that stand where and when they stood on the ideal one."""

    routing: str
    slowdown: str
    tail: str


def schedule_rows(found: Comparison) -> list[ScheduleRow]:
    routings = dict.fromkeys(policy.routing for policy in found.policies if policy.shares)
    rows = []
    for routing in routings:
        seen = found.same_schedule(routing)
        if seen is not None:
            rows.append(ScheduleRow(routing, with_spread(seen[0]), with_spread(seen[1], 2)))
    return rows


def lost_money(found: Comparison, policy: str, gpu_hour: float) -> float:
    """What GPU-hours lost to the network and to fragmentation cost."""
    hours = (
        found.spread(policy, "lost_to_the_network_gpu_h").mean
        + found.spread(policy, "lost_to_fragmentation_gpu_h").mean
    )
    return hours * gpu_hour


GroupRows = tuple[Sequence[str], list[tuple[str, int, list[str]]]]
"""Policies, and rows of (group, jobs, a number under each policy)."""


def group_rows(found: Comparison, groups: str, measure: str = "slowdown") -> GroupRows:
    """Slowdown or scaling factor of the groups of `by_size` or `by_model` under every policy, over all seeds.

    A group that a policy cannot start at all has a dash there.
    """
    table = {policy.name: getattr(found, groups)(policy.name) for policy in found.policies}
    names = [policy.name for policy in found.policies if policy.name != IDEAL or measure != "slowdown"]
    known = {policy: {group.name: group for group in table[policy]} for policy in names}
    most = max((table[policy.name] for policy in found.policies), key=lambda own: sum(group.jobs for group in own))
    rows = []
    for group in most:
        seen = (known[policy].get(group.name) for policy in names)
        cells = ["–" if one is None else f"{getattr(one, measure):.3f}" for one in seen]
        rows.append((group.name, group.jobs, cells))
    return names, rows
