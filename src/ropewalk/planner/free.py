"""What communication costs at least, whatever collective runs it and wherever its ranks are placed.

A rank must hand on what others lack: (n - 1)/n of a vector that n ranks gather, scatter or exchange, twice that for an
all-reduce (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009). It leaves over the links of its GPU, all
of them together, and every launch starts up once.
"""

from __future__ import annotations

import numpy as np

from ropewalk.fabric import Fabric
from ropewalk.planner._replay_kernel import Network
from ropewalk.planner.channels import CHANNELS, Channel
from ropewalk.planner.columns import Column
from ropewalk.planner.layout import Layout
from ropewalk.planner.pricing import Priced
from ropewalk.task.transport import Transport

_LAYOUT = int(Column.LAYOUT)
TWICE = (Channel.TENSOR_REDUCE, Channel.DATA_REDUCE, Channel.EXPERT_REDUCE, Channel.TIED)
SENDS = (Channel.SEND_ON, Channel.SEND_BACK)


def free_network(priced: Priced, fabric: Fabric, transport: Transport) -> Network:
    """The least costs of the layouts of candidates that fit, in the places where their own costs stand."""
    layouts, _ = priced.candidates.layouts
    rows = priced.kernels.rows
    costs = np.zeros_like(priced.kernels.network.costs)
    wire = 1 / max(transport.efficiency_inside, transport.efficiency_across)
    leaving = np.bincount(fabric.link_src, fabric.bandwidth, fabric.nodes)[: fabric.hosts].max()
    _, which = priced.candidates.layouts
    for at in np.unique(which[priced.fits]).tolist():
        layout = layouts[at]
        place = int(rows[np.flatnonzero((which == at) & priced.fits)[0], _LAYOUT])
        costs[place : place + layout.pipeline] = _least(layout, transport.start_up_s, wire / leaving)
    empty = np.zeros(len(priced.kernels.network.row_start), np.int64)
    return Network(costs, empty, np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _least(layout: Layout, start_up_s: float, per_byte: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    replicas = layout.data * layout.context
    ranks = {
        **dict.fromkeys((Channel.TENSOR_REDUCE, Channel.TENSOR_GATHER, Channel.TENSOR_SCATTER), layout.tensor),
        **dict.fromkeys((Channel.CONTEXT_GATHER, Channel.CONTEXT_SCATTER), layout.context),
        Channel.EXPERT: layout.expert, Channel.TABLES: layout.data,
        **dict.fromkeys((Channel.DATA_REDUCE, Channel.DATA_SCATTER, Channel.DATA_GATHER), replicas),
        **dict.fromkeys(
            (Channel.EXPERT_REDUCE, Channel.EXPERT_SCATTER, Channel.EXPERT_GATHER), replicas // layout.expert
        ),
        Channel.TIED: 2,
    }  # fmt: skip
    costs = np.zeros((CHANNELS, 3))
    for channel, many in ranks.items():
        if many > 1:
            part = (many - 1) / many * (2 if channel in TWICE else 1)
            costs[channel] = start_up_s, part * per_byte, part * per_byte
    for channel in SENDS:
        costs[channel] = start_up_s, per_byte, per_byte
    return costs
