"""Targets instead of sizes: the fewest servers whose step is short enough, or that train enough tokens in time.

A larger cluster is not always faster, and the batch does not split over every number of servers. So numbers of servers
that divide the batch are doubled until one reaches the target, and then all between the last two are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ropewalk import units
from ropewalk.errors import InputError, PlanError

SOME = 12
"""Sizes that an error lists."""


@dataclass(frozen=True)
class Target:
    """How fast training has to be: at most so long per step, or at least so many tokens/s.

    >>> read_target("30s").step_seconds(tokens_per_step=None)
    30.0
    >>> round(read_target("1e12tokens/30days").step_seconds(tokens_per_step=8e6), 2)
    20.74
    """

    text: str
    seconds: float | None = None
    tokens_per_s: float | None = None

    def step_seconds(self, tokens_per_step: float | None) -> float:
        """The longest step that reaches it, where a step trains so many tokens."""
        if self.seconds is not None:
            return self.seconds
        assert self.tokens_per_s is not None
        if not tokens_per_step:
            raise PlanError(
                f"target {self.text}: samples of this model have no tokens: give a step time, such as --target 30s"
            )
        return tokens_per_step / self.tokens_per_s


def read_target(text: str) -> Target:
    """A target as people write it: `30s` for a step, `1e12tokens/30days` or `2e6tokens/s` for tokens."""
    if "/" in text or "token" in text:
        return Target(text.strip(), tokens_per_s=units.token_rate(text))
    seconds = units.seconds(text)
    if seconds <= 0:
        raise PlanError(f"target {text}: the step time is too short: write it like 30s or 1e12tokens/30days")
    return Target(text.strip(), seconds=seconds)


@dataclass(frozen=True)
class TriedSize:
    """One size that was planned for."""

    servers: int
    seconds: float | None
    """Of the fastest step that was found; None where the model cannot be trained on so many."""
    problem: str = ""
    """Why it cannot."""


@dataclass(frozen=True)
class Reached:
    """The fewest servers that reach a target, and all that were tried, in that order."""

    servers: int
    seconds: float
    tried: tuple[TriedSize, ...]

    @property
    def said(self) -> str:
        """What was tried, in a few words: `servers tried: 4 (31 s), 8 (17 s), 6 (22 s)`."""
        return f"servers tried: {_listed(self.tried)}"

    def as_json(self) -> dict[str, Any]:
        return {
            "servers": self.servers,
            "step_time_s": self.seconds,
            "tried": [vars(one) for one in self.tried],
        }


def sizes_that_divide(batch: int, most: int) -> tuple[int, ...]:
    """Numbers of servers over which a batch splits evenly, and the whole cluster.

    >>> sizes_that_divide(24, 10)
    (1, 2, 3, 4, 6, 8, 10)
    """
    return tuple(size for size in range(1, most + 1) if batch % size == 0 or size == most)


def fewest_servers(
    sizes: Sequence[int],
    seconds_of: Callable[[int], float],
    longest_s: float,
    limit_of: Callable[[int], str],
    text: str,
) -> Reached:
    """The fewest servers whose step takes at most `longest_s`.

    `seconds_of` plans for a size; where it raises an `InputError`, the model cannot be trained on so many. `limit_of`
    says what keeps a size from being faster. Where no doubling reaches the target, all sizes around the fastest are
    tried. Others are not looked at: what was tried is said.
    """
    tried: dict[int, TriedSize] = {}

    def reaches(size: int) -> bool:
        if size not in tried:
            tried[size] = _try(size, seconds_of)
        seconds = tried[size].seconds
        return seconds is not None and seconds <= longest_s

    doubled = _doubled(sizes)
    first = next((at for at, size in enumerate(doubled) if reaches(size)), None)
    if first is None:
        fastest = min(range(len(doubled)), key=lambda at: tried[doubled[at]].seconds or float("inf"))
        low, high = doubled[max(fastest - 1, 0)], doubled[min(fastest + 1, len(doubled) - 1)]
    else:
        low, high = doubled[first - 1] if first else 0, doubled[first]
    enough = next((size for size in sizes if low < size <= high and reaches(size)), None)
    if enough is None:
        raise _nobody(tuple(tried.values()), limit_of, longest_s, text)
    seconds = tried[enough].seconds
    assert seconds is not None
    return Reached(enough, seconds, tuple(tried.values()))


def _doubled(sizes: Sequence[int]) -> list[int]:
    """The smallest, then always the first that is at least twice as large, and the largest."""
    found = [sizes[0]]
    for size in sizes:
        if size >= 2 * found[-1]:
            found.append(size)
    return found if found[-1] == sizes[-1] else [*found, sizes[-1]]


def _try(size: int, seconds_of: Callable[[int], float]) -> TriedSize:
    try:
        return TriedSize(size, seconds_of(size))
    except InputError as problem:
        return TriedSize(size, None, str(problem))


def _nobody(tried: Sequence[TriedSize], limit_of: Callable[[int], str], longest_s: float, text: str) -> PlanError:
    """No size reaches the target: the fastest, and what keeps it there."""
    trained = [(one.seconds, one.servers) for one in tried if one.seconds is not None]
    if not trained:
        last = tried[-1]
        return PlanError(
            f"target {text}: the model cannot be trained on {last.servers} servers or fewer: {last.problem}"
        )
    seconds, size = min(trained)
    return PlanError(
        f"target {text} is {units.show_seconds(longest_s)} per step, which no number of servers up to "
        f"{max(one.servers for one in tried)} reaches: {size} are fastest with {units.show_seconds(seconds)}, "
        f"and {limit_of(size)}: ask for {units.show_seconds(_rounded_up(seconds))} per step, or name a larger cluster "
        f"(servers tried: {_listed(tried)})"
    )


def _rounded_up(seconds: float) -> float:
    """Rounded to what is shown, never below."""
    return seconds * 1.001


def _listed(tried: Sequence[TriedSize]) -> str:
    said = [
        f"{one.servers} ({'no plan' if one.seconds is None else units.show_seconds(one.seconds)})"
        for one in tried[:SOME]
    ]
    more = f" and {len(tried) - SOME} more" if len(tried) > SOME else ""
    return f"{', '.join(said)}{more}"
