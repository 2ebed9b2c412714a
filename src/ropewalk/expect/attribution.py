"""Which link, cable, GPU or switch explains a shortfall best, if it alone is slow.

A slow part slows every measurement by what that sends over it, and no other: the part that is shared by the slow
measurements and not by the fast ones fits best. For each part the speed is found that suits all measurements; parts
that no measurement tells apart are one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.expect.components import ORDER, Component, components_of, slowest_of
from ropewalk.expect.likelihood import SCATTER, scores
from ropewalk.expect.series import Series
from ropewalk.fabric import Fabric

SPEEDS = np.geomspace(0.01, 0.95, 64)
"""Parts of its own speed that a guilty part is tried at."""
MOST_SAID = 3
FINER = 16
"""Steps between two of them in which the best is looked for."""


@dataclass(frozen=True, eq=False)
class Suspect:
    """Parts that explain the measurements equally well, at this part of their speed."""

    parts: tuple[Component, ...]
    speed: float
    score: float
    explained: tuple[int, ...]
    """Series that it slows."""

    @property
    def name(self) -> str:
        return self.parts[0].name

    @property
    def said(self) -> str:
        shown = named(self.parts)
        if len(shown) <= MOST_SAID:
            return " or ".join(part.said for part in shown)
        kinds, servers = {part.spoken for part in shown}, {part.server for part in shown}
        what = "switches" if kinds == {"switch"} else f"{kinds.pop()}s" if len(kinds) == 1 else "parts"
        server = servers.pop() if len(servers) == 1 else None
        where = "" if server is None else f" of server {server}"
        return f"one of {len(shown)} {what}{where} that these measurements cannot distinguish, such as {shown[0].said}"


def named(parts: Sequence[Component]) -> list[Component]:
    """Without directions of a cable that is named itself."""
    whole = {link for part in parts if part.kind == "cable" for link in part.links}
    return [part for part in parts if part.kind != "link" or not whole.issuperset(part.links)]


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Columns by series."""

    seconds: NDArray[np.float64]
    latency: NDArray[np.float64]
    bytes_s: NDArray[np.float64]
    kind: NDArray[np.int64]
    by_link: NDArray[np.float64]
    """Seconds that each link takes for its bytes."""


def kinds_of(series: Sequence[Series]) -> NDArray[np.int64]:
    """Measurements that share the deviations of the model."""
    largest = [one.largest.expected for one in series]
    keys = [(one.benchmark, row.run.algorithm, row.across) for one, row in zip(series, largest, strict=True)]
    number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[key] for key in keys])


def suspects(series: Sequence[Series], fabric: Fabric) -> list[Suspect]:
    """Everything that could be guilty alone, the best first."""
    evidence = _evidence(series, fabric)
    parts = components_of(fabric)
    slowest = slowest_of(parts, evidence.by_link)
    used = np.flatnonzero(slowest[_slow(series, evidence.kind)].max(axis=0) > 0)
    columns, which = np.unique(np.round(slowest[:, used], 15), axis=1, return_inverse=True)
    which = which.ravel()
    found = []
    for number in range(columns.shape[1]):
        same = [parts[place] for place in used[which == number].tolist()]
        same.sort(key=lambda part: ORDER.index(part.kind))
        found.append(_fitted(evidence, columns[:, number], tuple(same)))
    return sorted((_at_its_price(one, len(used)) for one in found), key=lambda one: one.score)


def _slow(series: Sequence[Series], kind: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Measurements that are slower than half of their kind, or all of a kind that is slow: a guilty part is on one."""
    ratio = np.array([one.ratio for one in series])
    usual = np.array([min(1.0, float(np.median(ratio[kind == one]))) for one in range(int(kind.max()) + 1)])
    found = ratio >= usual[kind]
    return np.asarray(found if found.any() else np.ones(len(series), bool))


def _at_its_price(one: Suspect, parts: int) -> Suspect:
    """One of many parts, at a speed that was free to choose, explains more by chance than what leaves no choice."""
    chosen = 2 * np.log(parts / len(one.parts))
    width = SCATTER / np.sqrt(max(1, len(one.explained)))
    fitted = 2 * np.log(np.log(SPEEDS[-1] / SPEEDS[0]) / (np.sqrt(2 * np.pi) * width))
    return replace(one, score=float(one.score + chosen + fitted))


def _evidence(series: Sequence[Series], fabric: Fabric) -> _Evidence:
    largest = [one.largest for one in series]
    latency = np.array([row.expected.latency_s for row in largest])
    bytes_s = np.array([row.expected.bytes_s for row in largest])
    measured = np.array([one.ratio for one in series]) * (latency + bytes_s)
    by_link = np.stack([row.expected.link_seconds(row.measured.size_bytes, fabric.bandwidth) for row in largest])
    return _Evidence(measured, latency, bytes_s, kinds_of(series), by_link)


def _fitted(evidence: _Evidence, slowest: NDArray[np.float64], parts: tuple[Component, ...]) -> Suspect:
    """The speed of a part at which it explains the measurements best."""

    def score(speeds: NDArray[np.float64]) -> NDArray[np.float64]:
        taken = np.maximum(evidence.bytes_s[:, None], slowest[:, None] / speeds)
        predicted = evidence.latency[:, None] + taken
        return scores(np.log(evidence.seconds[:, None] / predicted), evidence.kind)

    coarse = int(np.argmin(score(SPEEDS)))
    low, high = SPEEDS[max(0, coarse - 1)], SPEEDS[min(len(SPEEDS) - 1, coarse + 1)]
    fine = np.geomspace(low, high, 2 * FINER + 1)
    found = score(fine)
    best = int(np.argmin(found))
    slowed = np.flatnonzero(slowest / fine[best] > evidence.bytes_s * 1.05)
    return Suspect(parts, float(fine[best]), float(found[best]), tuple(slowed.tolist()))


def unexplained(series: Sequence[Series], predicted: NDArray[np.float64] | None = None) -> float:
    """The score where nothing is slow, or of times that are predicted otherwise."""
    largest = [one.largest for one in series]
    expected = np.array([row.expected.seconds for row in largest])
    measured = np.array([one.ratio for one in series]) * expected
    times = expected if predicted is None else predicted
    return float(scores(np.log(measured / times)[:, None], kinds_of(series))[0])
