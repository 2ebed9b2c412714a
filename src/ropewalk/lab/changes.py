"""What other commands do to the links of a lab: cables that are down before a job, links that change while it runs."""

from __future__ import annotations

import numpy as np

from ropewalk.errors import LabError
from ropewalk.lab.job import LabWork
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.request import HASH
from ropewalk.lab.state import LabState
from ropewalk.task import TaskKind
from ropewalk.units import show_bandwidth


def require_whole(state: LabState, network: LabNetwork, work: LabWork) -> None:
    """Refuse a job whose pinned paths cross cables that are down; the kernel's own ECMP takes other paths."""
    if not state.cut or (state.routing == HASH and not work.brings_routes):
        return
    transfers = np.flatnonzero(work.job.graph.kind == TaskKind.TRANSFER)
    used = work.routes.link_bytes(work.routes.rows_of(work.job.graph, transfers), np.ones(len(transfers)))
    needed = [cable for cable in state.cut if any(link >= 0 and used[link] for link in network.cables[cable].links)]
    if needed:
        names = [cable_name(network, cable) for cable in needed]
        raise LabError(
            f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} down in lab {state.name}, and {work.what} sends "
            f"over {'it' if len(names) == 1 else 'them'}: bring it up with `ropewalk lab fault --name {state.name} "
            f"--link {names[0]} --up`"
        )


def changed_links(network: LabNetwork, before: LabState, after: LabState) -> tuple[str, ...]:
    """What is different at the end of a run, link by link, in the fabric's own speeds.

    Links of other circuits are told by their counters; here circuits are those of the beginning.
    """
    if before.fabric != after.fabric:
        return ()
    was_slow, is_slow = dict(before.slowed), dict(after.slowed)
    rates = [
        f"{network.fabric.link_name(link)} runs at {_speed(network, is_slow, link)} instead of "
        f"{_speed(network, was_slow, link)}"
        for link in sorted(was_slow.keys() | is_slow.keys())
        if was_slow.get(link) != is_slow.get(link)
    ]
    down = [f"{cable_name(network, cable)} is down" for cable in after.cut if cable not in before.cut]
    up = [f"{cable_name(network, cable)} is up again" for cable in before.cut if cable not in after.cut]
    return (*rates, *down, *up)


def cable_name(network: LabNetwork, cable: int) -> str:
    """Both ends of a cable as `lab fault --link` takes them; parallel ones with their number."""
    ends = network.cables[cable].nodes
    beside = [number for number, other in network.cables.items() if set(other.nodes) == set(ends)]
    name = "-".join(network.fabric.node_names[node] for node in ends)
    return name if len(beside) == 1 else f"{name}:{beside.index(cable)}"


def _speed(network: LabNetwork, slowed: dict[int, int], link: int) -> str:
    return show_bandwidth(slowed.get(link, network.rate_bits(link)) * network.scale / 8)
