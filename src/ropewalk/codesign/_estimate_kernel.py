"""The kernel of the estimate: layers on servers in order, transfers and sums on links in the order of readiness.

Servers compute in order. A set of transfers between two layers, or a sum, is one job: it is ready when the slowest
server that takes part is, and it is over when the last of its links is done with it. Jobs go over links in the order in
which they are ready: the last of them is then done when it would be under fair sharing too. Transfers do not wait for
sums that are under way, they share links with them, flow by flow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel


class LayerEdges(NamedTuple):
    """What does not change: edges between layers, by reader and by source."""

    in_start: Ints
    in_edge: Ints
    out_start: Ints
    out_edge: Ints
    tensor_bytes: Floats
    """By edge, of one micro-batch."""
    micro_batches: int
    bucket_bytes: float
    servers: int
    links: int


class Seated(NamedTuple):
    """What a seating decides, by layer and by edge."""

    seat: Ints
    forward: Floats
    backward: Floats
    update: Floats
    sum_bytes: Floats
    there: Ints
    """By edge: the load of its transfers forward, -1 where nothing moves."""
    back: Ints


class Places(NamedTuple):
    """Servers of each seat that has been met, and the load of a sum over them."""

    start: Ints
    server: Ints
    sum_load: Ints
    group: Ints
    """Seats on the same servers are one group, whatever they share: their sums follow each other."""


class Loads(NamedTuple):
    """Loads that have been met, one behind the other."""

    start: Ints
    latency: Floats
    link: NDArray[np.int32]
    seconds: Floats
    flows: Floats


class Jobs(NamedTuple):
    """Transfers and sums that are waiting; what is over has a ready time of infinity."""

    ready: Floats
    load: Ints
    size: Floats
    seat: Ints
    """Of a sum; -1 for transfers."""
    end: Floats


@kernel
def _run(job, jobs, loads, places, busy, shared, groups, group_end, summed):  # type: ignore[no-untyped-def]
    """Send one job over its links."""
    load, size, seat = jobs.load[job], jobs.size[job], jobs.seat[job]
    begin = jobs.ready[job]
    if seat >= 0:
        begin = max(begin, group_end[places.group[seat]])
    begin += loads.latency[load]
    end = begin
    sums = 0.0
    if seat < 0:
        for group in groups:
            if group_end[group] > begin:
                sums += 1.0
    for at in range(loads.start[load], loads.start[load + 1]):
        link = loads.link[at]
        seconds = size * loads.seconds[at]
        in_turn = max(busy[link], begin) + seconds
        busy[link] = in_turn
        if seat < 0:
            fair = max(shared[link], begin) + seconds * (1.0 + sums / loads.flows[at])
            in_turn = min(in_turn, fair)
            shared[link] = in_turn
        end = max(end, in_turn)
    jobs.end[job] = end
    jobs.ready[job] = np.inf
    if seat >= 0:
        group_end[places.group[seat]] = end
        for at in range(places.start[seat], places.start[seat + 1]):
            summed[places.server[at]] = max(summed[places.server[at]], end)


@kernel
def _first(jobs, count):  # type: ignore[no-untyped-def]
    best = 0
    for job in range(1, count):
        if jobs.ready[job] < jobs.ready[best]:
            best = job
    return best


@kernel
def step_seconds(model, seated, places, loads):  # type: ignore[no-untyped-def]
    """Seconds of a step."""
    layers, edges, seats = len(seated.seat), len(seated.there), len(places.sum_load)
    most = 2 * edges * model.micro_batches + layers
    jobs = Jobs(
        np.empty(most), np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64), np.empty(most)
    )  # fmt: skip
    count = 0
    free = np.zeros(model.servers)
    summed = np.zeros(model.servers)
    busy, shared = np.zeros(model.links), np.zeros(model.links)
    group_end = np.zeros(seats)
    left = np.zeros(seats, np.int64)
    filled = np.zeros(seats)
    job_of = np.full(edges, -1)
    for layer in range(layers):
        if seated.sum_bytes[layer] > 0:
            left[places.group[seated.seat[layer]]] += 1
    groups = np.flatnonzero(left)

    for turn in range(2 * model.micro_batches):
        forward = turn < model.micro_batches
        job_of[:] = -1
        for number in range(layers):
            layer = number if forward else layers - 1 - number
            own = seated.forward[layer] if forward else seated.backward[layer]
            if forward:
                waits_start, waits, sends_start, sends, load_of = (
                    model.in_start, model.in_edge, model.out_start, model.out_edge, seated.there
                )  # fmt: skip
            else:
                waits_start, waits, sends_start, sends, load_of = (
                    model.out_start, model.out_edge, model.in_start, model.in_edge, seated.back
                )  # fmt: skip
            arrived = 0.0
            for at in range(waits_start[layer], waits_start[layer + 1]):
                job = job_of[waits[at]]
                if job >= 0:
                    while jobs.ready[job] != np.inf:
                        _run(_first(jobs, count), jobs, loads, places, busy, shared, groups, group_end, summed)
                    arrived = max(arrived, jobs.end[job])
            seat = seated.seat[layer]
            done = 0.0
            for at in range(places.start[seat], places.start[seat + 1]):
                server = places.server[at]
                free[server] = max(free[server], arrived) + own
                done = max(done, free[server])
            for at in range(sends_start[layer], sends_start[layer + 1]):
                edge = sends[at]
                if load_of[edge] >= 0:
                    jobs.ready[count], jobs.load[count], jobs.seat[count] = done, load_of[edge], -1
                    jobs.size[count] = model.tensor_bytes[edge]
                    job_of[edge] = count
                    count += 1
            if turn == 2 * model.micro_batches - 1 and seated.sum_bytes[layer] > 0:
                group = places.group[seat]
                left[group] -= 1
                filled[group] += seated.sum_bytes[layer]
                if filled[group] >= model.bucket_bytes or left[group] == 0:
                    jobs.ready[count], jobs.load[count], jobs.seat[count] = done, places.sum_load[seat], seat
                    jobs.size[count] = filled[group]
                    filled[group] = 0.0
                    count += 1
    while count:
        job = _first(jobs, count)
        if jobs.ready[job] == np.inf:
            break
        _run(job, jobs, loads, places, busy, shared, groups, group_end, summed)
    updates = np.zeros(model.servers)
    for layer in range(layers):
        for at in range(places.start[seated.seat[layer]], places.start[seated.seat[layer] + 1]):
            updates[places.server[at]] += seated.update[layer]
    longest = 0.0
    for server in range(model.servers):
        longest = max(longest, max(free[server], summed[server]) + updates[server])
    for job in range(count):
        longest = max(longest, jobs.end[job])
    return longest
