"""The demands of a seating: what its lowered step sends, counted without lowering it."""

from __future__ import annotations

import numpy as np

from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.seats import check_seats
from ropewalk.collectives.act import Act
from ropewalk.strategy.between import gradients_between, parts_between
from ropewalk.strategy.columns import cut, split_by_tensor
from ropewalk.strategy.seating import Manner, Seating
from ropewalk.task.lower.seat_pricer import SeatPricer, met_in
from ropewalk.workload.workload import Workload


def priced_demands(pricer: SeatPricer, seating: Seating) -> Demands:
    """What a step asks of the network, counted from layers whose prices are already there.

    Micro-batches and buckets change when bytes are sent, not how many; the fill of a bucket changes only how many sums
    they are in.
    """
    check_seats(pricer.workload, seating)
    _check_cuts(pricer.workload, seating)
    pairs = np.zeros((seating.servers, seating.servers))
    sums: dict[tuple[int, ...], float] = {}
    for reader, layer in enumerate(pricer.workload.layers):
        for source in dict.fromkeys(layer.inputs):
            ends = seating.seats[source], seating.seats[reader]
            for parts in (parts_between(*ends), gradients_between(*ends[::-1])):
                np.add.at(pairs, (parts.src, parts.dst), parts.bytes_of(pricer.output_bytes(source)))
    # Backward passes come last layer first: that is the order in which groups are first used.
    for at in reversed(range(len(seating.seats))):
        seat, work = seating.seats[at], pricer.work(at, seating.seats[at])
        met = met_in((*work.forward, *work.backward)) * pricer.micro_batches
        summed = work.sum_bytes + sum(one.amount for one in met if one.act is Act.ALL_REDUCE)
        if summed:
            sums[seat.servers] = sums.get(seat.servers, 0.0) + summed
        exchanged = sum(one.amount for one in met if one.act is Act.ALL_TO_ALL)
        if exchanged:
            members = np.array(seat.servers)
            a, b = np.nonzero(members[:, None] != members)
            pairs[members[a], members[b]] += exchanged / seat.degree
    return Demands(seating.servers, tuple(GroupSum(group, size) for group, size in sums.items()), pairs)


def _check_cuts(workload: Workload, seating: Seating) -> None:
    for layer, seat in zip(workload.layers, seating.seats, strict=True):
        if seat.manner is Manner.COLUMNS:
            cut(layer, seat.degree)
        elif seat.manner is Manner.TENSOR:
            split_by_tensor(layer, seat.degree, workload.batch)
