"""What communication costs at least, whatever collective runs it and wherever its ranks are placed.

A rank must hand on what others lack: (n - 1)/n of a vector that n ranks gather, scatter or exchange, twice that for an
all-reduce (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009). It leaves over the links of its GPU, all
of them together, and every launch starts up once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.collectives.choice import collective_choice
from ropewalk.collectives.nccl.constants import BASE_PAT, BASE_RING, BASE_TREE
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.fabric import Fabric
from ropewalk.planner._replay_kernel import ReplayCosts
from ropewalk.planner.channels import CHANNELS, Channel
from ropewalk.planner.columns import Column
from ropewalk.planner.layout import Layout
from ropewalk.planner.pricing import Priced
from ropewalk.training.network import NetworkUse

TWICE = (Channel.TENSOR_REDUCE, Channel.DATA_REDUCE, Channel.EXPERT_REDUCE, Channel.TIED)
SENDS = (Channel.SEND_ON, Channel.SEND_BACK)


@dataclass(frozen=True)
class Least:
    """What every collective and send costs at least."""

    start_up_s: float
    wire: float
    """Bytes on the wire for one of payload."""
    in_switches: bool
    """Do switches add up, so that an all-reduce sends its buffer once?"""

    @classmethod
    def of(cls, use: NetworkUse) -> Least:
        """Of everything that may run: single collectives, and where a library is the usual, what it may choose."""
        assert use.transport is not None
        start_up, shares = use.transport.start_up_s, [use.transport.efficiency_inside, use.transport.efficiency_across]
        by_library = use.library if COLLECTIVES[collective_choice(use.named()).default].chooses else None
        if by_library is None:
            return cls(start_up, 1 / max(shares), False)
        rates = by_library.rates
        shares += [rates.rings, rates.exchanges, rates.switches, rates.nic]
        return cls(min(start_up, *BASE_RING, *BASE_TREE, BASE_PAT), 1 / max(shares), rates.switches > 0)


def free_network(priced: Priced, which: Ints, fabric: Fabric, use: NetworkUse) -> tuple[Ints, ReplayCosts]:
    """Rows of some candidates as kernels read them, with the least costs of their layouts."""
    layouts, of_candidate = priced.candidates.layouts
    used, place = np.unique(of_candidate[which], return_inverse=True)
    least = Least.of(use)
    leaving = np.bincount(fabric.link_src, fabric.bandwidth, fabric.nodes)[: fabric.hosts].max()
    costs = [_least(layouts[at], least, leaving) for at in used.tolist()]
    stages = [layouts[at].pipeline for at in used.tolist()]
    rows = priced.kernels.rows[which]
    rows[:, Column.LAYOUT] = np.cumsum([0, *stages])[place.ravel()]
    rows[:, Column.LOADS] = 0
    of_stage = np.repeat(np.array(costs).reshape(-1, CHANNELS, 3), stages, axis=0)
    return rows, ReplayCosts(of_stage, np.zeros(2, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _least(layout: Layout, least: Least, leaving: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    replicas = layout.data * layout.context
    ranks = {
        **dict.fromkeys((Channel.TENSOR_REDUCE, Channel.TENSOR_GATHER, Channel.TENSOR_SCATTER), layout.tensor),
        **dict.fromkeys((Channel.CONTEXT_GATHER, Channel.CONTEXT_SCATTER, Channel.HEADS), layout.context),
        Channel.EXPERT: layout.expert, Channel.TABLES: layout.data,
        **dict.fromkeys((Channel.DATA_REDUCE, Channel.DATA_SCATTER, Channel.DATA_GATHER), replicas),
        **dict.fromkeys(
            (Channel.EXPERT_REDUCE, Channel.EXPERT_SCATTER, Channel.EXPERT_GATHER), layout.expert_copies
        ),
        Channel.TIED: 2,
    }  # fmt: skip
    start_up_s, per_byte = least.start_up_s, least.wire / leaving
    costs = np.zeros((CHANNELS, 3))
    for channel, many in ranks.items():
        if many > 1:
            part = (many - 1) / many * (2 if channel in TWICE else 1)
            part = min(part, 1.0) if least.in_switches else part
            costs[channel] = start_up_s, part * per_byte, part * per_byte
    for channel in SENDS:
        costs[channel] = start_up_s, per_byte, per_byte
    return costs
