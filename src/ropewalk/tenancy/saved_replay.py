"""A replay as it stands in a file: every entry with its type, and what must hold among them."""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError, Findings
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.curve import Curve
from ropewalk.tenancy.drained import SavedDrained
from ropewalk.tenancy.footprint import Footprint
from ropewalk.tenancy.paths import links_of
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.rates import JobPace
from ropewalk.tenancy.record import Blocked, JobRecord, Refusal
from ropewalk.tenancy.running import Past
from ropewalk.tenancy.saved_state import SavedState
from ropewalk.tenancy.shards.ahead import Patching, Promise
from ropewalk.tenancy.waits import Wait
from ropewalk.tenancy.work import Iteration

COLUMNS = {
    "exchange": "<i8", "floor_s": "<f8", "flow_s": "<f8", "nic_flows": "<f8", "rounds": "<f8", "flow_start": "<i8",
    "path": "<i4", "share": "<f8", "wired_s": "<f8",
}  # fmt: skip
"""The arrays of a footprint and how their numbers are kept."""
_OF_PHASES = ("exchange", "floor_s", "flow_s", "nic_flows", "rounds")
Packed = tuple[tuple[int, ...], str]
"""The shape of an array, and its bytes in base64."""


@dataclass(frozen=True)
class SavedFootprint:
    """What a running job does to the network, as it was chosen when it started."""

    exchange: Packed
    floor_s: Packed
    flow_s: Packed
    nic_flows: Packed
    rounds: Packed
    flow_start: Packed
    path: Packed
    share: Packed
    wired_s: Packed
    sent: float

    @classmethod
    def of(cls, footprint: Footprint) -> SavedFootprint:
        return cls(
            **{name: _packed(getattr(footprint, name), kind) for name, kind in COLUMNS.items()}, sent=footprint.sent
        )

    def footprint(self, work: Iteration, plant: Plant, gpus: int) -> Footprint:
        """The same footprint; refused where its columns do not belong together or name links that are not there."""
        arrays = {name: _unpacked(getattr(self, name), kind) for name, kind in COLUMNS.items()}
        if not (_fit_together(arrays) and _exist(arrays, work, plant) and 0 <= self.sent < math.inf):
            raise ClusterError("the flows of a running job do not belong to this cluster: start again without resuming")
        return Footprint(work=work, sent=self.sent, gpus=gpus, **arrays)


def _fit_together(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Are there as many entries as phases and flows?"""
    phases, starts, path = len(arrays["exchange"]), arrays["flow_start"], arrays["path"]
    return (
        all(arrays[name].shape == (phases,) for name in _OF_PHASES)
        and arrays["wired_s"].shape in ((0,), (phases,))
        and path.ndim == 2
        and path.shape == arrays["share"].shape
        and starts.shape == (phases + 1,)
        and starts[0] == 0
        and starts[-1] == len(path)
        and bool((np.diff(starts) >= 0).all())
    )


def _exist(arrays: Mapping[str, NDArray[Any]], work: Iteration, plant: Plant) -> bool:
    """Are links and exchanges among those that there are, and all other numbers finite?"""
    exchange, path = arrays["exchange"], arrays["path"]
    numbers = [array for name, array in arrays.items() if COLUMNS[name] == "<f8"]
    return (
        bool(((path >= -1) & (path < links_of(plant))).all())
        and bool(((exchange >= -1) & (exchange < len(work.exchanges))).all())
        and all(bool((np.isfinite(array) & (array >= 0)).all()) for array in numbers)
    )


@dataclass(frozen=True)
class SavedRun:
    """A running job."""

    number: int
    allocation: Allocation
    start_s: float
    left: float
    since_s: float
    pace: JobPace
    quiet_iteration_s: float
    sent_flows: float
    flows: float
    met_flows: float
    rerouted: bool
    footprint: SavedFootprint


@dataclass(frozen=True)
class SavedReplay:
    """Everything that the events so far have left behind; numbers are those of jobs."""

    version: int
    question: str
    now_s: float
    arrived: int
    changed: int
    events: int
    state: SavedState
    dead: SavedDrained
    tried: tuple[int, bool] | None
    line: tuple[tuple[int, bool], ...]
    running: tuple[SavedRun, ...]
    waits: tuple[tuple[int, Wait], ...]
    blocked: tuple[Blocked, ...]
    blocked_head: int | None
    pasts: tuple[tuple[int, Past], ...]
    records: tuple[tuple[int, JobRecord], ...]
    refused: tuple[tuple[int, Refusal], ...]
    curve: Curve
    promises: tuple[tuple[str, Promise], ...]
    patched: Patching | None

    def check(self, jobs: int, changes: int, plant: Plant) -> None:
        """Refuse numbers of jobs that are not there, times that are none, and jobs that are in two places at once."""
        findings = Findings(ClusterError, "the replay")
        if not (0 <= self.arrived <= jobs and 0 <= self.changed <= changes and self.events >= 0):
            findings.add("it counts events that do not exist: start again without resuming")
        running, waiting = [run.number for run in self.running], [number for number, _ in self.line]
        ended = [number for number, _ in (*self.records, *self.refused)]
        known = [*running, *waiting, *ended]
        named = [*known, *(number for number, _ in (*self.waits, *self.pasts))]
        named += [] if self.blocked_head is None else [self.blocked_head]
        named += [] if self.tried is None else [self.tried[0]]
        if min(named, default=0) < 0 or max(named, default=-1) >= jobs:
            findings.add(f"it names a job that is not one of {jobs}: start again without resuming")
        if len(set(known)) < len(known) or len(known) != self.arrived:
            findings.add("a job runs, waits or has ended twice, or is missing: start again without resuming")
        if len({len(column) for column in vars(self.curve).values()}) > 1:
            findings.add("its curves have different lengths: start again without resuming")
        if not all(0 <= time < math.inf for time in self._times()):
            findings.add("a time is negative or infinite: start again without resuming")
        if any(max(promise.servers, default=-1) >= plant.servers for _, promise in self.promises):
            findings.add("a job is promised servers that there are not: start again without resuming")
        for held in self._held():
            if max(held.gpus, default=0) >= plant.gpus or not held.gpus:
                findings.add(
                    f"job {held.job!r} held GPUs that {plant.name} does not have: start again without resuming"
                )
            held.check()
            if not _has_switches(plant, held):
                findings.add(
                    f"job {held.job!r} held links or switches that {plant.name} does not have: "
                    "start again without resuming"
                )
        findings.raise_if_any()

    def _times(self) -> list[float]:
        times = [self.now_s, *self.curve.time_s, *(one.at_s for one in self.blocked)]
        times += [
            time for run in self.running for time in (run.start_s, run.left, run.since_s, run.flows, run.met_flows)
        ]
        times += [time for _, one in self.records for time in (one.arrival_s, one.quiet_s, *one.waited_s.values())]
        return times + [wait.since_s for _, wait in self.waits]

    def _held(self) -> list[Allocation]:
        found = [run.allocation for run in self.running]
        ended: Sequence[JobRecord | Past] = [*(one for _, one in self.records), *(one for _, one in self.pasts)]
        return found + [stretch.allocation for one in ended for stretch in one.stretches]


def _has_switches(plant: Plant, held: Allocation) -> bool:
    """Are there all leafs, spines, cores and reserved cables that this job names?"""
    return (
        max((*held.leafs, *held.leaf_of_gpu), default=-1) < plant.leafs
        and max((*held.spines, *held.spine_of_gpu), default=-1) < plant.spines
        and max(held.core_of_gpu, default=-1) < max(plant.cores, 1)
        and _has_cables(plant.cables, held.reserved())
        and _has_cables(plant.core_cables, held.reserved_above())
    )


def _has_cables(cables: NDArray[np.int32], reserved: Sequence[tuple[int, int, int]]) -> bool:
    """Is each (switch below, switch above, number) one of this many parallel cables?"""
    below, above, number = np.array(reserved, np.int64).reshape(-1, 3).T
    inside = (below < cables.shape[0]) & (above < cables.shape[1])
    return bool(inside.all() and (number < cables[below, above]).all())


def _packed(array: NDArray[Any], kind: str) -> Packed:
    return array.shape, b64encode(np.ascontiguousarray(array, np.dtype(kind)).tobytes()).decode()


def _unpacked(packed: Packed, kind: str) -> NDArray[Any]:
    shape, text = packed
    try:
        return np.frombuffer(b64decode(text, validate=True), np.dtype(kind)).reshape(shape).copy()
    except (ValueError, NotBase64):
        raise ClusterError("the flows of a running job are damaged: start again without resuming") from None
