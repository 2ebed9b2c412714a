"""How far below the best step any other can be, and what each known fact says about it."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.planner.answer import Bound, Rung
from ropewalk.planner.best_first import PlannerSearch
from ropewalk.planner.layers import Seconds
from ropewalk.planner.pricing import Priced, StrategyPrices
from ropewalk.training.answer import StepAnswer

FREE = (
    ". With stages that have replicas of their own, and gradients that reach into the next step: all kernels, spread "
    "evenly over all GPUs"
)


def bound_of(
    priced: Priced, found: PlannerSearch, anything_s: float, training: StepAnswer, prices: StrategyPrices, *, free: bool
) -> Bound:
    """The bounds with their proofs; `anything_s` holds for every choice but for what `free` stages and orders add."""
    if free:
        anything_s = min(anything_s, kernels_alone(priced))
    return Bound(
        min(anything_s, found.bound_s),
        found.bound_s,
        proof_of(priced, found) + (FREE if free else ""),
        ladder_of(priced, found.bound_s, anything_s, training, prices),
        found.complete,
    )


def proof_of(priced: Priced, found: PlannerSearch) -> str:
    """Which proofs the bounds have."""
    even = bool(priced.symmetric[priced.fits].all())
    ground = (
        "copies of every collective run at the same time by symmetry of the network"
        if even
        else "copies of a collective that the network treats differently are bounded one by one and together"
    )
    which = (
        "every strategy whose bound is below the best step was simulated"
        if found.complete
        else "it is the lowest bound of any strategy that was not simulated"
    )
    return (
        f"with default collectives, buckets and even cuts: {which}; {ground}. With any collectives, cuts, recomputed "
        "blocks, orders and placements: every GPU sends what others lack over all its links, and every server receives "
        "what its ranks lack, weights no more than one layer ahead; the whole blocks of the model are spread over "
        "the stages as evenly as possible, and no more is recomputed than memory requires"
    )


def bound_on_ports(
    priced: Priced, bounds_s: Floats, least_s: Floats, training: StepAnswer, prices: StrategyPrices
) -> Bound:
    """The bounds for every wiring; `priced` is on a switch on which servers send what all their ports do.

    `bounds_s` holds for rings, even cuts and usual buckets, `least_s` for every choice, both by candidate.
    """
    anything, uniform = float(np.nanmin(least_s)), float(np.nanmin(bounds_s))
    return Bound(
        min(anything, uniform), uniform, PROOF_ON_PORTS, ladder_of(priced, uniform, anything, training, prices)
    )


PROOF_ON_PORTS = (
    "for every wiring: no server sends more than all its ports together do, and nothing arrives before it was sent. "
    "With rings, even cuts and default buckets every collective takes at least what one copy of it takes alone on a "
    "non-blocking switch. With any collectives, cuts, orders and placements: every GPU sends what others lack over "
    "all its links, and the work of a micro-batch is spread over the stages as well as can be"
)
"""Why no wiring is below its bound."""


def ladder_of(
    priced: Priced, uniform_s: float, anything_s: float, training: StepAnswer, prices: StrategyPrices
) -> tuple[Rung, ...]:
    """From arithmetic at peak rate to the best of the uniform space."""
    rungs = []
    peak, flops = prices.pricer.device.peak_flops.get(prices.pricer.precision.name), training.statistics.flops
    if peak is not None:
        rungs.append(Rung("arithmetic", flops / (peak * training.gpus), "all operations at the peak rate of the GPU"))
    fits = np.flatnonzero(priced.fits)
    rungs += [
        Rung("kernels", kernels_alone(priced), "kernels of any split, without waiting"),
        Rung("memory", _kernels(priced, fits), "splits that fit into memory, with recomputation"),
        Rung(
            "any choice", anything_s, "pipeline fill and communication, for any collectives, cuts, order and placement"
        ),
        Rung("even cuts and rings", uniform_s, "every pass replayed, without contention"),
    ]
    return tuple(sorted(rungs, key=lambda rung: rung.seconds))


def kernels_alone(priced: Priced) -> float:
    """Seconds that no candidate falls below: all its kernels, spread evenly over all GPUs."""
    return _kernels(priced, np.arange(len(priced.candidates)))


def _kernels(priced: Priced, which: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """The least seconds that GPUs compute on average, of some candidates."""
    given, column = priced.kernels, priced.candidates.column
    by_splitting = given.model.seconds[:, :, [Seconds.FORWARD, Seconds.BACKWARD]].sum((1, 2))
    seconds = by_splitting[given.rows[which, 0]] * column("micro_batches")[which] / column("pipeline")[which]
    again = np.array([0, 1, 2, 0])[column("recompute")[which]]
    more = given.model.seconds[:, :, Seconds.AGAIN : Seconds.AGAIN + 3].sum(1)[given.rows[which, 0], again]
    return float((seconds + more * column("micro_batches")[which] / column("pipeline")[which]).min())
