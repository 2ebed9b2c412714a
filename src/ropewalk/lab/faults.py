"""Faults of a lab that is up: cables that go down and come back, links that lose speed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.errors import LabError
from ropewalk.lab import state as labs
from ropewalk.lab.lab import Lab
from ropewalk.lab.lifecycle import opened
from ropewalk.lab.links import cables_named, links_named
from ropewalk.lab.network import FASTEST_BITS, SLOWEST_BITS, LabNetwork
from ropewalk.lab.state import LabState
from ropewalk.units import show_bandwidth

DOWN, UP = "down", "up"


@dataclass(frozen=True)
class Fault:
    """What happens to which link: `down`, `up` (whole again, at its own speed), or another speed of the fabric."""

    link: str
    what: str | float
    """`down`, `up`, or bytes/s in the fabric's own terms."""


def cause(name: str, fault: Fault) -> str:
    """Change a lab and its document; what was done, in a sentence."""
    with labs.changing(), opened(name) as (state, lab):
        cables, links = cables_named(lab.network, fault.link), links_named(lab.network, fault.link)
        if isinstance(fault.what, float):
            rates = dict.fromkeys(links, bits_in_lab(lab.network, fault.what))
            lab.set_rates(rates)
            labs.write(replace(state, slowed=_slowed(state, rates)))
            return f"{fault.link} runs at {show_bandwidth(fault.what)}"
        if fault.what == DOWN:
            if gone := [cable for cable in cables if cable in state.cut]:
                raise LabError(f"{fault.link} is already down ({len(gone)} of {len(cables)} cables): bring it up first")
            for cable in cables:
                lab.cut(cable)
            labs.write(replace(state, cut=tuple(sorted({*state.cut, *cables}))))
            return f"{fault.link} is down"
        if state.lent and set(cables) & set(state.cut):
            raise LabError("a run with its own routes is in progress: bring the cable up when it has ended")
        labs.write(_whole_again(state, lab, cables))
        return f"{fault.link} is up at full bandwidth"


def bits_in_lab(network: LabNetwork, speed: float) -> int:
    """A speed of the fabric in the lab."""
    bits = round(8 * speed / network.scale)
    if not SLOWEST_BITS <= bits <= FASTEST_BITS:
        least, most = (show_bandwidth(limit * network.scale / 8) for limit in (SLOWEST_BITS, FASTEST_BITS))
        raise LabError(
            f"{show_bandwidth(speed)} is {show_bandwidth(bits / 8)} in a lab of 1:{network.scale:g}: give --rate "
            f"{least.replace(' ', '')} to {most.replace(' ', '')}, or --down"
        )
    return bits


def _whole_again(state: LabState, lab: Lab, cables: tuple[int, ...]) -> LabState:
    """Cables with their own speeds and routes; the document afterwards."""
    still_cut = frozenset(state.cut) - set(cables)
    for cable in set(cables) & set(state.cut):
        lab.restore(cable, still_cut)
    both = {link for cable in cables for link in lab.network.cables[cable].links}
    slowed = [link for link, _ in state.slowed if link in both]
    lab.set_rates({link: lab.network.rate_bits(link) for link in slowed})
    return replace(state, cut=tuple(sorted(still_cut)), slowed=_slowed(state, dict.fromkeys(slowed)))


def _slowed(state: LabState, rates: dict[int, int] | dict[int, None]) -> tuple[tuple[int, int], ...]:
    """The links at other speeds after a change; None: at their own again."""
    now = {**dict(state.slowed), **rates}
    return tuple(sorted((link, bits) for link, bits in now.items() if bits is not None))
