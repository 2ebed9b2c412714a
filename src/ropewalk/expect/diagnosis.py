"""Healthy or not, and what explains it best: one slow part of the network, or one setting of all servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ropewalk.errors import InputError
from ropewalk.expect.attribution import Suspect, kinds_of, suspects, unexplained
from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.prices import CollectivePrices
from ropewalk.expect.series import Series
from ropewalk.expect.settings import SETTINGS, Changed
from ropewalk.progress import Progress, silent

CLEAR = 20.0
"""Score by which an explanation must be better than none to make a cluster unhealthy whose times are all within the
intervals: one link that is slower than its like."""
BY_CHANCE, FAR_SLOWER = 0.1, 1.15
"""The part of all measurements that may be slower than their intervals on a healthy cluster, and how much slower."""
TIED = 4.0
"""Scores closer than this are not told apart."""
MOST_NAMED = 8
MOST_IN_PAIRS = 32
"""Series up to which two settings at a time are tried."""
NOTICED = 1.1
"""Times expected from which on a setting may be the reason."""


@dataclass(frozen=True, eq=False)
class Cause:
    """An explanation with its score; lower is better."""

    kind: str
    """part or setting."""
    name: str
    """By which it is known: the first of its parts, or the setting."""
    said: str
    score: float
    speed: float | None = None
    """Of a part, compared with a healthy one."""
    names: tuple[str, ...] = ()
    """All parts that cannot be told apart."""
    links: tuple[int, ...] = ()
    """Of the first of them."""

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind, "name": self.name, "about": self.said, "score": self.score, "speed": self.speed,
            "names": list(self.names),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The verdict on all measurements."""

    series: tuple[Series, ...]
    healthy: bool
    unexplained: float
    """Score where nothing is slow."""
    causes: tuple[Cause, ...]
    """Best first; none where the cluster is healthy."""

    @property
    def best(self) -> Cause | None:
        return self.causes[0] if self.causes else None

    @property
    def ties(self) -> tuple[Cause, ...]:
        """Causes that explain the measurements about as well as the best."""
        return tuple(cause for cause in self.causes[1:] if cause.score - self.causes[0].score < TIED)

    @property
    def explains(self) -> bool:
        """Does the best cause explain more than that everything is a little slow?"""
        return self.best is not None and bool(self.best.score < self.unexplained)


def diagnosed(series: Sequence[Series], prices: CollectivePrices, progress: Progress = silent) -> Diagnosis:
    """Judge all series, and look for a cause where they fall short."""
    progress(0, None, "searching for a cause")
    nothing, slow = unexplained(series), any(one.slow for one in series)
    parts = [_of_part(one) for one in suspects(series, prices.fabric)] if slow or len(series) > 2 else []
    clear = bool(parts) and nothing - parts[0].score > CLEAR and (parts[0].speed or 1.0) < 0.9
    if not clear and not _beyond_chance(series):
        return Diagnosis(tuple(series), not any(one.wrong for one in series), nothing, ())
    best = parts[0].score if parts else np.inf
    settings = _settings(series, prices, progress, best) if _all_of_a_kind_are_slow(series) else []
    causes = sorted([*parts, *settings], key=lambda cause: cause.score)
    telling = [cause for cause in causes[:MOST_NAMED] if cause.score < nothing] or causes[:1]
    return Diagnosis(tuple(series), False, nothing, tuple(telling))


def _beyond_chance(series: Sequence[Series]) -> bool:
    """Of many healthy measurements a few are a little slower than their intervals."""
    excess = np.array([one.excess for one in series])
    return bool((excess > 1).mean() > BY_CHANCE or excess.max() > FAR_SLOWER)


def _all_of_a_kind_are_slow(series: Sequence[Series]) -> bool:
    """A setting slows everything that it concerns: is there a kind of measurement of which half are slow?"""
    kind, ratio = kinds_of(series), np.array([one.ratio for one in series])
    return any(bool(np.median(ratio[kind == one]) > NOTICED) for one in np.unique(kind))


def _of_part(suspect: Suspect) -> Cause:
    names = tuple(part.name for part in suspect.parts)
    return Cause("part", suspect.name, suspect.said, suspect.score, suspect.speed, names, suspect.parts[0].links)


def _settings(series: Sequence[Series], prices: CollectivePrices, progress: Progress, best: float) -> list[Cause]:
    """Every setting that makes a difference; two together where one does not explain the measurements."""
    alone = _tried([(name,) for name in SETTINGS], series, prices, progress)
    score = {cause.name: cause.score for cause in alone}
    if len(series) > MOST_IN_PAIRS or min(best, *score.values()) < _price(2):
        return alone  # two settings would have to explain more than there is
    pairs = _tried(list(combinations(SETTINGS, 2)), series, prices, progress)
    return alone + [one for one in pairs if one.score < min(score[name] for name in one.names)]


def _price(settings: int) -> float:
    """What it costs to choose so many settings out of all."""
    return 2 * settings * float(np.log(len(SETTINGS)))


def _tried(
    tried: Sequence[tuple[str, ...]], series: Sequence[Series], prices: CollectivePrices, progress: Progress
) -> list[Cause]:
    found = []
    for done, names in enumerate(tried):
        progress(done, len(tried), f"simulating the setting {' and '.join(names)}")
        try:
            changed = _changed(names, prices)
            predicted = None if changed is None else _predicted(series, CollectivePrices(*changed))
        except InputError:
            continue  # a network that was given for these NICs has no other number of them
        if predicted is not None:
            score = unexplained(series, predicted) + _price(len(names))
            said = "; and ".join(f"{name}: {SETTINGS[name].about}" for name in names)
            found.append(Cause("setting", " + ".join(names), said, score, names=names))
    return found


def _changed(names: Sequence[str], prices: CollectivePrices) -> Changed | None:
    """The cluster and the library with all of these settings; None where one of them changes nothing."""
    now = prices.cluster, prices.library
    for name in names:
        then = SETTINGS[name].make(*now)
        if then is None or then == now:
            return None
        now = then
    return now


def _predicted(series: Sequence[Series], prices: CollectivePrices) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    largest = [one.largest.measured for one in series]
    prices.prepare((BENCHMARKS[one.benchmark], one.groups) for one in largest)
    return np.array([prices.expected(BENCHMARKS[one.benchmark], one.size_bytes, one.groups).seconds for one in largest])
