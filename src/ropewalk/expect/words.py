"""Verdicts in sentences."""

from __future__ import annotations

from ropewalk.expect.diagnosis import Cause, Diagnosis
from ropewalk.expect.series import Series
from ropewalk.units import show_percent

MOST_GPUS_NAMED = 4
CORRUPTED = (
    "data are corrupted in transit or in memory, which no slow part explains: look for Xid messages and ECC errors of "
    "the GPUs (dmesg, nvidia-smi -q -d ECC), and run nccl-tests on pairs of GPUs to find the faulty one"
)
"""What to do where nccl-tests found wrong values."""


def headline(found: Diagnosis) -> str:
    """Healthy or not, in one sentence."""
    slow, total = sum(one.slow for one in found.series), len(found.series)
    wrong = sum(one.wrong for one in found.series)
    what = "measurement" if total == 1 else "measurements"
    if found.healthy:
        return (
            f"healthy: {'it is' if total == 1 else f'all {total} {what} are'} within the interval of a healthy cluster"
        )
    if wrong:
        also = f", {slow} {'is' if slow == 1 else 'are'} slower than in a healthy cluster" if slow else ""
        return f"unhealthy: {wrong} of {total} {what} {'has' if wrong == 1 else 'have'} wrong results{also}"
    if not slow:
        return (
            f"unhealthy: one part is slower than comparable parts, although all {total} {what} are within their "
            "intervals"
        )
    return f"unhealthy: {slow} of {total} {what} {'is' if slow == 1 else 'are'} slower than in a healthy cluster"


def cause_in_words(cause: Cause) -> str:
    """What is guilty, and how slow it is."""
    if cause.speed is None:
        return f"setting {cause.said}"
    return f"{cause.said} at {show_percent(cause.speed, 0)} of its speed"


def _in_short(cause: Cause) -> str:
    return f"setting {cause.name}" if cause.speed is None else cause_in_words(cause)


def explanation(found: Diagnosis) -> list[str]:
    """The best cause, what ties with it, and what to do where nothing explains the shortfall."""
    if found.healthy:
        return []
    if any(one.wrong for one in found.series):
        return [CORRUPTED, *_explained(found)] if found.best is not None else [CORRUPTED]
    return _explained(found)


def _explained(found: Diagnosis) -> list[str]:
    if found.best is None:
        return ["no part and no setting explains it"]
    if not found.explains:
        return ["no single part or setting explains it: everything is equally slow; measure pairs to learn more"]
    lines = [f"best explained by {cause_in_words(found.best)}"]
    ties = found.ties
    if ties:
        shown = "; ".join(_in_short(cause) for cause in ties[:MOST_GPUS_NAMED])
        more = f"; {len(ties) - MOST_GPUS_NAMED} more" if len(ties) > MOST_GPUS_NAMED else ""
        lines.append(f"equally well by {shown}{more}: measure pairs that use one but not the other")
    return lines


def who_in_words(one: Series, names: tuple[str, ...]) -> str:
    """Who took part.

    >>> who_in_words(Series("send", ((0, 2),), ()), ("gpu0.0", "gpu0.1", "gpu1.0"))
    'gpu0.0 gpu1.0'
    """
    group = one.groups[0]
    shown = " ".join(names[gpu] for gpu in group[:MOST_GPUS_NAMED])
    if len(group) > MOST_GPUS_NAMED:
        shown = f"{names[group[0]]} to {names[group[-1]]}, {len(group)} GPUs"
    return shown + (f" and {len(one.groups) - 1} groups like it" if len(one.groups) > 1 else "")
