"""How far below the best step any other can be, and what each known fact says about it."""

from __future__ import annotations

import numpy as np

from ropewalk.planner.answer import Rung
from ropewalk.planner.best_first import Searched
from ropewalk.planner.layers import Seconds
from ropewalk.planner.pricing import Priced, Prices
from ropewalk.training.answer import TrainingAnswer


def proof_of(priced: Priced, found: Searched) -> str:
    """Which proof the bound has."""
    even = bool(priced.symmetric[priced.fits].all())
    ground = (
        "copies of every collective run at the same time by symmetry of the network"
        if even
        else "copies of a collective that the network treats differently are bounded one by one and together"
    )
    if found.complete:
        return f"every strategy whose bound is below the best step was simulated; {ground}"
    return f"the lowest bound of any strategy that was not simulated; {ground}"


def ladder_of(priced: Priced, found: Searched, training: TrainingAnswer, prices: Prices) -> tuple[Rung, ...]:
    """From arithmetic at peak rate to the bound."""
    rungs = []
    peak, flops = prices.pricer.device.peak_flops.get(prices.pricer.precision.name), training.statistics.flops
    if peak is not None:
        rungs.append(Rung("arithmetic", flops / (peak * training.gpus), "all operations at the peak rate of the GPU"))
    fits = np.flatnonzero(priced.fits)
    rungs += [
        Rung("kernels", _kernels(priced, np.arange(len(priced.candidates))), "kernels as any split has them, no waits"),
        Rung("memory", _kernels(priced, fits), "of splits that fit into memory, with what they compute again"),
        Rung("fill and exchanges", float(np.nanmin(priced.floor_s)), "fill, drain and exchanges that stop a stage"),
        Rung("bound", found.bound_s, "every pass at its time, nobody else on the network"),
    ]
    return tuple(rungs)


def _kernels(priced: Priced, which: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """The least seconds that GPUs compute on average, of some candidates."""
    given, column = priced.kernels, priced.candidates.column
    by_splitting = given.model.seconds[:, :, [Seconds.FORWARD, Seconds.BACKWARD]].sum((1, 2))
    seconds = by_splitting[given.rows[which, 0]] * column("micro_batches")[which] / column("pipeline")[which]
    again = np.array([0, 1, 2, 0])[column("recompute")[which]]
    more = given.model.seconds[:, :, Seconds.AGAIN : Seconds.AGAIN + 3].sum(1)[given.rows[which, 0], again]
    return float((seconds + more * column("micro_batches")[which] / column("pipeline")[which]).min())
