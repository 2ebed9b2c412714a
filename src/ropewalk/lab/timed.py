"""Faults at given times of a run: a cable goes down and comes up again, a link loses speed.

>>> timed_fault("h0-h1 down at 0.5s up at 1.5s")
TimedFault(link='h0-h1', speed=None, at_s=0.5, up_s=1.5)
>>> timed_fault("leaf0->spine1 5Mbps at 200ms")
TimedFault(link='leaf0->spine1', speed=625000.0, at_s=0.2, up_s=None)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread

import numpy as np
from numpy.typing import NDArray

from ropewalk import units
from ropewalk.errors import LabError
from ropewalk.lab.faults import bits_in_lab
from ropewalk.lab.lab import Lab
from ropewalk.lab.links import cables_named, links_named
from ropewalk.lab.network import LabNetwork
from ropewalk.sim.changing import DOWN
from ropewalk.units import show_bandwidth, show_seconds

_WRITTEN = re.compile(r"(?P<link>\S+) (?P<what>\S+) at (?P<at>\S+)(?: up at (?P<up>\S+))?")


@dataclass(frozen=True)
class TimedFault:
    """What happens to a link in every run, in seconds of the lab after its start."""

    link: str
    speed: float | None
    """Bytes/s of the fabric; None: it goes down."""
    at_s: float
    up_s: float | None
    """When it is whole again; None: when the run has ended."""

    def said(self) -> str:
        what = "is down" if self.speed is None else f"runs at {show_bandwidth(self.speed)}"
        until = "on" if self.up_s is None else f"to {show_seconds(self.up_s)}"
        return f"{self.link} {what} from {show_seconds(self.at_s)} {until}"


def timed_fault(text: str) -> TimedFault:
    """A fault as people write it: LINK down at TIME, or LINK SPEED at TIME; both may end with `up at TIME`."""
    found = _WRITTEN.fullmatch(" ".join(text.split()))
    if found is None:
        raise LabError(
            f"--fault {text!r} cannot be read: write it like 'h0-h1 down at 0.5s up at 1.5s' or 'h0->h1 5Mbps at 0.5s'"
        )
    speed = None if found["what"] == "down" else units.bandwidth(found["what"])
    at_s, up_s = units.seconds(found["at"]), None if found["up"] is None else units.seconds(found["up"])
    if up_s is not None and up_s <= at_s:
        raise LabError(f"--fault {text!r} ends before it starts: give a later `up at`")
    return TimedFault(found["link"], speed, at_s, up_s)


def changes_of(
    network: LabNetwork, faults: Sequence[TimedFault], bandwidth: NDArray[np.float64]
) -> list[tuple[float, NDArray[np.float64]]]:
    """When links get which speed, in bytes/s of payload; `bandwidth` is that of all links before."""
    now, changes = np.array(bandwidth), []
    for at_s, fault, begins in sorted(_moments(faults), key=lambda moment: moment[0]):
        now = now.copy()
        for link in _links(network, fault):
            own, part = float(bandwidth[link]), DOWN
            if fault.speed is not None:
                part = bits_in_lab(network, fault.speed) / network.rate_bits(link)
            now[link] = own * part if begins else own
        changes.append((at_s, now))
    return changes


def _moments(faults: Sequence[TimedFault]) -> Iterator[tuple[float, TimedFault, bool]]:
    for fault in faults:
        yield fault.at_s, fault, True
        if fault.up_s is not None:
            yield fault.up_s, fault, False


def _links(network: LabNetwork, fault: TimedFault) -> list[int]:
    """A cable that goes down takes both directions with it."""
    if fault.speed is not None:
        return list(links_named(network, fault.link))
    cables = cables_named(network, fault.link)
    return [link for cable in cables for link in network.cables[cable].links if link >= 0]


@contextmanager
def happening(lab: Lab, faults: Sequence[TimedFault], rates: Mapping[int, int]) -> Iterator[None]:
    """Let faults happen while a block runs; afterwards all links are as before. `lab` is busy with nothing else."""
    moments = sorted(_moments(faults), key=lambda moment: moment[0])
    over, failed, began = Event(), list[Exception](), time.perf_counter()
    broken: set[TimedFault] = set()

    def play() -> None:
        for at_s, fault, begins in moments:
            if over.wait(max(0.0, began + at_s - time.perf_counter())):
                return
            try:
                _act(lab, fault, rates, begins=begins)
                broken.add(fault) if begins else broken.discard(fault)
            except Exception as problem:  # said by the thread that waits for the run
                failed.append(problem)
                return

    player = Thread(target=play, daemon=True)
    player.start()
    try:
        yield
    finally:
        over.set()
        player.join()
        for fault in sorted(broken, key=lambda one: one.at_s):
            _act(lab, fault, rates, begins=False)
    if failed:
        raise failed[0]


def _act(lab: Lab, fault: TimedFault, rates: Mapping[int, int], *, begins: bool) -> None:
    if fault.speed is None:
        cables = cables_named(lab.network, fault.link)
        act: Callable[[int], None] = lab.cut if begins else partial(lab.restore, still_cut=frozenset())
        for cable in cables:
            act(cable)
        return
    slow = bits_in_lab(lab.network, fault.speed)
    links = links_named(lab.network, fault.link)
    lab.set_rates({link: slow if begins else rates.get(link, lab.network.rate_bits(link)) for link in links})
