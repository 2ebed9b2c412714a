"""The cluster over time: which job held which GPUs of which leaf, and which links of which spine, as rectangles.

A leaf is a band whose height are its GPUs, a spine one whose height are the leafs it has links to. GPUs and reserved
links belong to one job at a time, so rectangles never cover each other. Jobs that cross leafs have colours, those
inside one leaf, or one unit of rails, are grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.report import colours, quantity
from ropewalk.report.chart import Swatch, embedded
from ropewalk.report.cluster_words import duration
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.circuits import ends_of
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import Policy
from ropewalk.tenancy.record import JobRecord
from ropewalk.tenancy.study import ClusterStudy
from ropewalk.tenancy.timeline import Timeline

MOST_BANDS = 64
"""Leafs, and spines, that are drawn; of more the first ones."""
MOST_BYTES = 400_000
"""Of all policies together; of longer traces the beginning is drawn, and the page stays under 1 MB."""
BAND_PIXELS = (8, 30)
PANEL_PIXELS = 900
"""Height that bands share."""
AXIS_PIXELS = 34
GREY = colours.OTHER


@dataclass(frozen=True)
class Rectangle:
    """A job on a run of neighbouring GPUs of a leaf, or of links of a spine."""

    band: int
    low: int
    high: int
    start_s: float
    end_s: float
    job: int


@dataclass(frozen=True)
class ClusterMap:
    """The drawing as the page needs it."""

    key: str
    choices: tuple[str, ...]
    """Policies to choose from."""
    legend: tuple[Swatch, ...]
    height: int
    caption: str
    json: Markup


def cluster_map(study: ClusterStudy) -> ClusterMap:
    """One drawing with a view for each policy."""
    room = MOST_BYTES // max(len(study.runs), 1)
    views = [_view(policy, policy.plant(study.plant), run, room) for policy, run in study.runs]
    shown_s = {policy.name: view.pop("shown_s") for (policy, _), view in zip(study.runs, views, strict=True)}
    remarks = _remarks(study.plant, {name: seconds for name, seconds in shown_s.items() if seconds is not None})
    height = max(int(view["height"]) for view in views)
    data = {
        "views": views,
        "palette": [[colour.light, colour.dark] for colour in (GREY, *palette.SERIES)],
        "axis": AXIS_PIXELS,
    }
    return ClusterMap(
        "map",
        tuple(policy.name for policy in study.policies),
        (
            Swatch(f"inside one {_home(study.plant)}", GREY),
            *(Swatch("", colour) for colour in palette.SERIES[:-1]),
            Swatch(f"across {_home(study.plant)}s, one colour per job", palette.SERIES[-1]),
        ),
        height,
        "Each band is a leaf with its GPUs, or a spine or core with its links to the switches below; empty space is "
        "free. Dedicated links only are drawn. Hover over a job to highlight it everywhere. Drag to zoom in, "
        "double-click to reset." + "".join(f" {remark}" for remark in remarks),
        embedded(data),
    )


def _view(policy: Policy, plant: Plant, run: Timeline, room: int) -> dict[str, Any]:
    leafs, spines = min(plant.leafs, MOST_BANDS), min(_bands(plant)[1], MOST_BANDS)
    drawn = (rectangle for rectangle in rectangles(plant, run.jobs) if _is_drawn(rectangle, plant, leafs, spines))
    found = held(replace(one, band=one.band - plant.leafs + leafs) if one.band >= plant.leafs else one for one in drawn)
    about = [_about(job, _home(plant)) for job in run.jobs]
    begin, end, kept = window(found, about, room)
    links = any(place[0] + place[1] > leafs for one in kept for place in one.places)
    shown_spines = spines if links else 0
    bands = leafs + shown_spines
    pixels = min(max(PANEL_PIXELS // max(bands, 1), BAND_PIXELS[0]), BAND_PIXELS[1])
    jobs = sorted({one.job for one in kept})
    number = {job: at for at, job in enumerate(jobs)}
    return {
        "name": policy.name,
        "height": AXIS_PIXELS + bands * pixels + (20 if links else 0) + 8,
        "pixels": pixels,
        "span": [begin, end],
        "bands": [*_names(plant.leaf_names[:leafs]), *_names(_bands(plant)[0][:shown_spines])],
        "leafs": leafs,
        "sizes": [*plant.gpus_per_leaf[:leafs].tolist(), *_heights(plant)[:shown_spines]],
        "jobs": [about[job] for job in jobs],
        "looks": [_look(job, run.jobs[job]) for job in jobs],
        "held": [one.row(number[one.job]) for one in kept],
        "shown_s": end - begin if len(kept) < len(found) else None,
    }


@dataclass(frozen=True)
class HeldBands:
    """What a job held from start to end: (first band, bands, low, high) of bands that follow each other."""

    start_s: float
    end_s: float
    job: int
    places: tuple[tuple[int, int, int, int], ...]

    def row(self, number: int) -> list[float]:
        """As the page has it, where the job has this number."""
        times = round(self.start_s, 3), round(self.end_s, 3)
        return [*times, number, *(value for place in self.places for value in place)]


def held(found: Iterable[Rectangle]) -> list[HeldBands]:
    """The rectangles of each stretch of a job together, in the order of their starts."""
    stretches: dict[tuple[float, int, float], list[tuple[int, int, int]]] = {}
    for one in found:
        stretches.setdefault((one.start_s, one.job, one.end_s), []).append((one.low, one.high, one.band))
    return [
        HeldBands(start_s, end_s, job, tuple(_over_bands(sorted(places))))
        for (start_s, job, end_s), places in sorted(stretches.items())
    ]


def _over_bands(places: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """(first band, bands, low, high): the same places of bands that follow each other are one.

    >>> list(_over_bands([(0, 8, 1), (0, 8, 2), (0, 8, 4), (4, 8, 3)]))
    [(1, 2, 0, 8), (4, 1, 0, 8), (3, 1, 4, 8)]
    """
    first = 0
    for at, (low, high, band) in enumerate(places):
        if at + 1 == len(places) or places[at + 1] != (low, high, band + 1):
            yield places[first][2], at + 1 - first, low, high
            first = at + 1


def rectangles(plant: Plant, jobs: Sequence[JobRecord]) -> Iterator[Rectangle]:
    """What jobs held in each of their stretches, and when; bands of spines come after those of all leafs."""
    for number, job in enumerate(jobs):
        for stretch in job.stretches:
            if stretch.end_s > stretch.start_s:
                for band, low, high in _bands_of(plant, stretch.allocation):
                    yield Rectangle(band, low, high, stretch.start_s, stretch.end_s, number)


def _bands_of(plant: Plant, held: Allocation) -> list[tuple[int, int, int]]:
    """(band, low, high) of everything that a job holds in one place."""
    runs: list[tuple[int, int, int]] = []
    gpus = np.array(sorted(held.gpus), np.int64)
    of_leaf = plant.leaf_of_gpu[gpus]
    for leaf in np.unique(of_leaf).tolist():
        places = plant.place_on_leaf[gpus[of_leaf == leaf]].tolist()
        runs += [(leaf, low, high) for low, high in _runs(places)]
    for band, places in _links(plant, held):
        runs += [(plant.leafs + band, low, high) for low, high in _runs(sorted(places))]
    return runs


def window(found: Sequence[HeldBands], about: Sequence[str], room: int) -> tuple[float, float, list[HeldBands]]:
    """All of them, or the first ones that, with what is said of their jobs, take no more than so many bytes."""
    if not found:
        return 0.0, 1.0, []
    said: set[int] = set()
    for at, one in enumerate(found):
        room -= len(embedded(one.row(one.job))) + 1
        if one.job not in said:
            room -= len(embedded(about[one.job]).encode()) + 3  # a comma, a colour and a comma
            said.add(one.job)
        if room < 0 < at and one.start_s > found[0].start_s:
            return found[0].start_s, one.start_s, list(found[:at])
    return found[0].start_s, max(one.end_s for one in found), list(found)


def _links(plant: Plant, held: Allocation) -> Iterable[tuple[int, list[int]]]:
    """(band, places in it that the job holds): a place for every cable from below, or for every fibre of a switch."""
    of_band: dict[int, list[int]] = {}
    tiers, strands = plant.tiers, _strands(plant.cables)
    if isinstance(plant, OpticalPlant | PodOpticalPlant):
        first = plant.first_switch if isinstance(plant, PodOpticalPlant) else np.zeros(1, np.int64)
        ends = ends_of(plant, held)
        pod = tiers.pod_of_leaf[ends.leaf]
        places = (ends.leaf - tiers.first_leaf[pod]).tolist()
        for band, place in zip((first[pod] + ends.switch).tolist(), places, strict=True):
            of_band.setdefault(band, []).append(place)
    else:
        for leaf, spine, cable in held.reserved():
            place = leaf - int(tiers.first_leaf[tiers.pod_of_leaf[leaf]])
            of_band.setdefault(spine, []).append(place * strands + cable)
    strands, below = _strands(plant.core_cables), len(_below_cores(plant)[0])
    for spine, core, cable in held.reserved_above():
        of_band.setdefault(below + core, []).append(spine * strands + cable)
    return sorted(of_band.items())


def _strands(cables: NDArray[np.int32]) -> int:
    """Places of a switch in the band of one above it: its parallel cables."""
    return max(1, int(cables.max(initial=1)))


def _heights(plant: Plant) -> list[int]:
    """Places in every band of links: of a core those of all spines."""
    return [*_below_cores(plant)[1], *[plant.spines * _strands(plant.core_cables)] * plant.cores]


def _bands(plant: Plant) -> tuple[Sequence[str], int]:
    """What links are drawn by: spines or the optical switches in front of them, and cores."""
    names = (*_below_cores(plant)[0], *plant.core_names)
    return names, len(names)


def _below_cores(plant: Plant) -> tuple[Sequence[str], list[int]]:
    """(names, places): of a spine the cables of its pod's leafs; a switch has one fibre of each of them."""
    leafs = np.diff(plant.tiers.first_leaf)
    if isinstance(plant, OpticalPlant):
        return plant.spine_names[plant.packet_spines :], [plant.leafs] * plant.switches
    if isinstance(plant, PodOpticalPlant):
        names = [name for pod in range(plant.tiers.pods) for name in plant.switch_names(pod)]
        return names, np.repeat(leafs, plant.switches_of_pod).tolist()
    return plant.spine_names, (leafs[plant.tiers.pod_of_spine] * _strands(plant.cables)).tolist()


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours as [low, high).

    >>> _runs([0, 1, 2, 5])
    [(0, 3), (5, 6)]
    """
    cuts = [0, *(at + 1 for at, (a, b) in enumerate(pairwise(places)) if b > a + 1), len(places)]
    return [(places[a], places[b - 1] + 1) for a, b in pairwise(cuts) if b > a]


def _is_drawn(rectangle: Rectangle, plant: Plant, leafs: int, spines: int) -> bool:
    return rectangle.band < leafs or plant.leafs <= rectangle.band < plant.leafs + spines


def _look(number: int, job: JobRecord) -> int:
    """0 is grey; neighbours in the trace get different colours."""
    return 0 if not job.allocation.crosses else 1 + number % len(palette.SERIES)


def _home(plant: Plant) -> str:
    """What a job stays in that needs no links between switches: with rails, a unit has a leaf for each of them."""
    return "leaf" if plant.rails == 1 else "unit"


def _about(job: JobRecord, home: str) -> str:
    where = f"{len(job.allocation.leafs)} leafs" if job.allocation.crosses else f"one {home}"
    again = f" in {len(job.stretches)} places" if job.restarts else ""
    return f"{job.name}: {job.gpus} GPUs on {where}, waited {duration(job.jwt_s)}, ran {duration(job.jrt_s)}{again}"


def _names(names: Sequence[str]) -> list[str]:
    return [name if len(name) <= 16 else name[:15] + "…" for name in names]


def _remarks(plant: Plant, shown_s: Mapping[str, float]) -> list[str]:
    """What is not drawn; `shown_s` are the policies whose end is not, with the time that is."""
    remarks = []
    if plant.leafs > MOST_BANDS:
        remarks.append(f"The first {MOST_BANDS} of {quantity.count(plant.leafs)} leafs are shown.")
    if shown_s:
        parts = ", ".join(f"{duration(seconds)} under {name}" for name, seconds in shown_s.items())
        remarks.append(f"A page has room for the beginning of this trace only: {parts}.")
    return remarks
