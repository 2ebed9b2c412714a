"""What no packet-level run could do with a fabric, routes and tasks, said before it starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError, Findings, GraphError, RouteError
from ropewalk.fabric import Fabric
from ropewalk.routing import Routes
from ropewalk.task import TaskGraph, TaskKind

MOST_SECONDS = 1e6
"""Times are whole picoseconds in 64 bits: they end at 4.6 million seconds."""

MOST_LATENCY = 1e3
SLOWEST, FASTEST = 1e3, 1e12
"""Bytes/s of a link: below, one packet takes minutes; above, a byte takes less than a picosecond."""


def check_fabric(fabric: Fabric) -> None:
    """Refuse wires that no packet could use."""
    findings = Findings(FabricError, fabric.name)
    slow = np.flatnonzero(~((fabric.bandwidth >= SLOWEST) & (fabric.bandwidth <= FASTEST)))
    if len(slow):
        link = int(slow[0])
        findings.add(
            f"link {fabric.link_name(link)} carries {fabric.bandwidth[link]:g} bytes/s: give {SLOWEST:g} to {FASTEST:g}"
        )
    wrong = np.flatnonzero(~((fabric.latency >= 0) & (fabric.latency <= MOST_LATENCY)))
    if len(wrong):
        link = int(wrong[0])
        findings.add(
            f"link {fabric.link_name(link)} has a latency of {fabric.latency[link]:g} s: "
            f"give zero to {MOST_LATENCY:g} s, such as 1us"
        )
    findings.raise_if_any()


def check_transfers(graph: TaskGraph, routes: Routes) -> None:
    """Refuse hosts that do not exist and transfers that last longer than time is counted."""
    fabric = routes.fabric
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    ends = np.concatenate([graph.place[transfer], graph.peer[transfer]])
    if len(ends) and ends.max() >= fabric.hosts:
        raise GraphError(
            f"a transfer names host {int(ends.max())}, but {fabric.name} has hosts 0…{fabric.hosts - 1}: "
            "use a larger fabric or fewer ranks"
        )
    # As if each crossed the slowest link of all, alone.
    rate = np.minimum(graph.rate_cap[transfer], fabric.bandwidth.min(initial=np.inf))
    seconds = graph.amount[transfer] / rate
    if len(transfer) and seconds.max() > MOST_SECONDS:
        task = int(transfer[np.argmax(seconds)])
        raise GraphError(
            f"task {task}, a transfer of {graph.amount[task]:g} bytes, takes up to {seconds.max():g} s, and packets "
            f"are simulated for {MOST_SECONDS:g} s: simulate it as flows, or send less"
        )


def check_pauses_return(fabric: Fabric, back: NDArray[np.int32]) -> None:
    """Refuse a lossless fabric in which a switch cannot answer the sender of a link."""
    lonely = np.flatnonzero((back < 0) & (fabric.link_dst >= fabric.hosts))
    if len(lonely):
        raise FabricError(
            f"link {fabric.link_name(int(lonely[0]))} of {fabric.name} has no opposite direction for pause frames: "
            "add it, or turn priority flow control off"
        )


def check_same_fabric(routes: Routes, ack_routes: Routes) -> None:
    """Refuse acknowledgements that travel somewhere else."""
    one, other = routes.fabric, ack_routes.fabric
    if one is other or (np.array_equal(one.link_src, other.link_src) and np.array_equal(one.link_dst, other.link_dst)):
        return
    raise RouteError(
        f"routes of data are on {one.name}, those of acknowledgements on {other.name}: route both on the same fabric"
    )
