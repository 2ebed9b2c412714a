"""What communication costs at least, whatever collective runs it and wherever its ranks are placed.

A rank must hand on what others lack: (n - 1)/n of a vector that n ranks gather, scatter or exchange, twice that for an
all-reduce (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009). It leaves over the links of its GPU, all
of them together, and every launch starts up once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.planner._replay_kernel import Network
from ropewalk.planner.channels import CHANNELS, Channel
from ropewalk.planner.columns import Column
from ropewalk.planner.layout import Layout
from ropewalk.planner.pricing import Priced
from ropewalk.task.transport import Transport

Ints = NDArray[np.int64]

TWICE = (Channel.TENSOR_REDUCE, Channel.DATA_REDUCE, Channel.EXPERT_REDUCE, Channel.TIED)
SENDS = (Channel.SEND_ON, Channel.SEND_BACK)


def free_network(priced: Priced, which: Ints, fabric: Fabric, transport: Transport) -> tuple[Ints, Network]:
    """Rows of some candidates as kernels read them, with the least costs of their layouts."""
    layouts, of_candidate = priced.candidates.layouts
    used, place = np.unique(of_candidate[which], return_inverse=True)
    wire = 1 / max(transport.efficiency_inside, transport.efficiency_across)
    leaving = np.bincount(fabric.link_src, fabric.bandwidth, fabric.nodes)[: fabric.hosts].max()
    costs = [_least(layouts[at], transport.start_up_s, wire / leaving) for at in used.tolist()]
    stages = [layouts[at].pipeline for at in used.tolist()]
    rows = priced.kernels.rows[which]
    rows[:, Column.LAYOUT] = np.cumsum([0, *stages])[place.ravel()]
    rows[:, Column.LOADS] = 0
    of_stage = np.repeat(np.array(costs).reshape(-1, CHANNELS, 3), stages, axis=0)
    return rows, Network(of_stage, np.zeros(2, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))


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
