"""How long a pass takes at least whose weights are gathered one layer ahead: ZeRO-3 behind a narrow cut.

The weights of a layer are gathered while the layer before it runs, and not earlier: nobody has room for more. So what
the layers of a pass need must get through the narrowest cut of the network during that pass, and the time that it
takes longer than the computation is lost, even if the whole step has seconds to spare.

Take a pass with layers 1 … n in the order in which it meets them. Every rank is done with layer 1 no earlier than the
first rank that begins the pass, and then its computation; weights of layer 3 and of all behind it are gathered later
than that. When the last rank begins layer j, those of layers 3 … j have arrived, and everything that ranks exchanged
inside of layers 2 … j - 1. Nobody is far ahead of that rank. The weights of layer j + 2 come from all ranks that have
parts of them, which begin to hand them on when they are done with layer j: where layers are not split by tensor
parallelism these are all ranks, so nobody is done with layer j + 2 = n any earlier. Where they are, ranks of a tensor
group wait for each other in layer j + 1, and for those of all other groups in layer j + 3 = n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.planner._legs_kernel import pace_of
from ropewalk.planner._replay_kernel import ReplayCosts
from ropewalk.planner.channels import IN_LAYERS, Channel
from ropewalk.planner.columns import Column, Setting
from ropewalk.planner.layers import Held, Seconds
from ropewalk.planner.layout import Layout
from ropewalk.planner.narrow import Into, degrees_of, least_through, met_by
from ropewalk.planner.pricing import Priced

FEWEST = 6
"""Layers of which a pass has some in the middle."""
TENSOR = [int(one) for one in (Channel.TENSOR_REDUCE, Channel.TENSOR_GATHER, Channel.TENSOR_SCATTER)]


def waiting_floor(
    priced: Priced, at: int, row: Ints, layout: Layout, network: ReplayCosts, into: tuple[Into, ...], wire: float
) -> float:
    """Seconds of a step of a candidate with one stage, at least, with those in which passes wait for weights.

    `row` is that of the candidate with the least costs of its layout in `network`.
    """
    one, many = priced.kernels, int(row[Column.MICRO_BATCHES])
    floor, (ahead, back) = (
        float(priced.least_of_any(np.array([at]), row[None], network)[0]),
        _passes(priced, row, network),
    )
    dense = ahead.weights[:, 0]
    if row[Column.ZERO] < 3 or row[Column.REPLICAS] < 2 or len(dense) < FEWEST or not (dense > 0).all():
        return floor
    if one.model.hidden[row[Column.SPLITTING]].any():
        return floor  # how much of a pass is spent on exchanges beside it is not known
    update_gpu, update_host = one.updates[at, 0].tolist()
    pace = pace_of(row, one.model, np.zeros(1, np.int64), 0, update_gpu, update_host, False)
    ahead_s = pace * ahead.computed_s.sum() + ahead.sent_s.sum()
    back_s = (floor - pace * update_gpu) / many - ahead_s
    size, gathered = one.settings[Setting.ELEMENT_BYTES], [(ahead, ahead_s), (back, back_s)]
    for run, alone_s in gathered if one.settings[Setting.REGATHER] > 0 else gathered[:1]:
        floor += many * max(0.0, _window(run, layout, into, wire, size) - alone_s)
    return floor


class LayerPass(NamedTuple):
    """A pass, layer by layer in the order in which it meets them."""

    computed_s: Floats
    sent_s: Floats
    """What exchanges inside of layers take at least."""
    met: Floats
    """By channel: bytes, and how often."""
    weights: Floats
    """Parameters to gather: of all data ranks, of experts."""


def _passes(priced: Priced, row: Ints, network: ReplayCosts) -> tuple[LayerPass, LayerPass]:
    """The forward and the backward pass of a micro-batch, the latter from the last layer to the first."""
    model, split, kind = priced.kernels.model, row[Column.SPLITTING], int(row[Column.RECOMPUTE])
    seconds, held = model.seconds[split], model.held[split]
    weights = held[:, [Held.DENSE, Held.EXPERT]] + held[:, [Held.FROZEN, Held.FROZEN_EXPERT]]
    costs = network.costs[row[Column.LAYOUT], :IN_LAYERS]
    found = []
    for columns, which in (([Seconds.FORWARD], [0]), ([Seconds.BACKWARD, Seconds.AGAIN + kind], [1, 2 + kind])):
        met = model.met[split][:, which].sum(1)
        sent = met[..., 0] @ costs[:, 1] + met[..., 1] @ costs[:, 0]
        found.append(LayerPass(seconds[:, columns].sum(1), sent, met, weights))
    ahead, back = found
    return ahead, LayerPass(*(column[::-1] for column in back))


def _window(run: LayerPass, layout: Layout, into: tuple[Into, ...], wire: float, element_bytes: float) -> float:
    """Seconds of a pass in which its weights get through the narrowest cut, at least."""
    degrees, alone_s = degrees_of(layout), run.computed_s + run.sent_s
    last = len(alone_s) - (3 if layout.tensor == 1 else 4)
    if layout.tensor > 1 and not run.met[last + 1, TENSOR, 1].any():
        return 0.0
    dense, experts = run.weights[2 : last + 1].sum(0) * element_bytes
    sizes = {name: one.gathered for name, one in met_by(run.met[1:last, :, 0].sum(0)).items()}
    sizes |= {"data": float(dense), "experts": float(experts)}
    through = [least_through(sizes, degrees, cut.gpus) / cut.bytes_per_s for cut in into if cut.gpus < degrees.prod()]
    return float(alone_s[[0, last, -1]].sum() + max(through, default=0.0) * wire)
