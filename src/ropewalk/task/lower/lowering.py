"""Lower a workload and a strategy to a training step: what every rank computes, when it meets whom, what it sends.

The rules, each of them as the frameworks that people use do it:

- A rank computes one thing at a time, in the order of its timetable. Meetings inside a layer (tensor, context and
  expert parallelism) stop it until they are over (`moves`). Of two passes side by side (DualPipe) one computes while
  the other meets; both hand on their results when both have ended.
- Gradients of weights that are put off (zero bubble) are a pass of their own without meetings; buckets follow them.
- Activations and their gradients go from stage to stage as soon as they are computed, each direction in order. Each
  tensor rank sends its part and the receivers gather it, or each sends all (`Strategy.scatter_gather`).
- Where stages have their own numbers of replicas (`Strategy.parts`), each holds its part of the samples of every
  micro-batch, and two that have samples in common send each other a message (`roster`).
- Gradients are reduced bucket by bucket, in order, while the last micro-batch's backward pass goes on. ZeRO-1
  scatters the sums and gathers weights after the update; ZeRO-2 does so for every micro-batch, since gradients have
  no other place to be; ZeRO-3 gathers the weights of a layer before each of its passes, one layer ahead, and scatters
  its gradients after each backward pass. A layer whose weights have just been used is not gathered again.
  Without `Strategy.regather` weights are kept from the forward to the backward pass.
- Where stages keep two copies of the model (DualPipe), half of the micro-batches go through each, and gradients are
  reduced over the ranks of both. A gradient is a sum over samples, so each sample counts once whatever the replicas:
  one of r replicas of a copy has summed up 1/(2 r) of the batch. Both copies run the same passes in the same order,
  each for its own micro-batch, so ZeRO-2 and 3 share gradients and weights out over the ranks of both, pass by pass.
- An embedding that first and last stage share is summed between the two after all other gradients.
- The optimiser's update comes last; under ZeRO a rank updates its part.
- Hosts launch ahead of their GPUs and wait for nothing: a rank is slowed down where launching its whole step takes
  longer than computing it (`Pace`).

Where ranks are servers and every layer has a seat of its own (TopoOpt), all of that holds, and:

- A stage is the layers that the same servers share in the same manner, so a server may be in several stages. All of
  them share one row of passes, micro-batch by micro-batch through the model, then back; each server goes through its
  own layers of that row and waits for nobody else.
- What moves between two seats is where what one has and the other needs overlap (`strategy.between`). A sender sends
  when its own part is computed, and sends do not queue behind each other.
- Gradients of different groups do not wait for each other; those of a group run in order. A server updates its weights
  when all its gradients are there.
- Layers are priced one by one (`Pace`), so that a search over seats can move each by itself.

Not modelled: clipping of gradients, statistics over ranks, loading of data; for seats, the sum of a tied embedding
between the seats of its two layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import StrategyError
from ropewalk.strategy.checks import check
from ropewalk.strategy.order import Order
from ropewalk.strategy.placement import Placement
from ropewalk.strategy.prices import KeptPrices, Pace, Prices
from ropewalk.strategy.server import ONE_GPU, Server
from ropewalk.strategy.shares import Share
from ropewalk.strategy.stages import Pieces, cut
from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.known import Known
from ropewalk.task.lower.launching import Layers, launched
from ropewalk.task.lower.passes import Passes
from ropewalk.task.lower.roster import Roster
from ropewalk.task.lower.script import script_of
from ropewalk.task.lower.seat_pricer import SeatPricer, seat_pricer
from ropewalk.task.step import Step
from ropewalk.timetable.passes import Pass
from ropewalk.timetable.stage_times import StageTimes, stage_times
from ropewalk.workload.workload import Workload

MOST_OPERATIONS = 2_000_000
"""Operations times the ranks in each, up to which `auto` keeps every layer apart."""
DETAILS = ("auto", "layer", "stage")


def lower(
    workload: Workload,
    strategy: Strategy,
    placement: Placement,
    prices: Prices | KeptPrices | SeatPricer,
    detail: str = "auto",
    server: Server = ONE_GPU,
) -> Step:
    """The step of this model under this strategy.

    `detail` says how finely: `layer` keeps every computation and collective of every layer, `stage` sums up what lies
    between two moments at which others than tensor ranks wait; `auto` takes `layer` where that is small enough. Where
    ranks are servers whose GPUs work as one, `server` says what they are, and layers are kept apart; who lowers many
    seatings hands over a `SeatPricer` that remembers their layers.
    """
    known: Known | SeatPricer
    if isinstance(prices, SeatPricer):
        known = prices
    elif strategy.grain == SERVER:
        known = seat_pricer(workload, strategy, prices, server)
    else:
        known = Known(prices)
    made = Lowered(workload, strategy, placement, known, detail)
    return made.step(made.one_step())


@dataclass(frozen=True, eq=False)
class StepsInARow:
    """A step after the other; `flops` and facts of the step are those of one of them."""

    step: Step
    ends: tuple[NDArray[np.int64], ...]
    """By step: the operations with which it is over."""


def lower_steps(
    workload: Workload,
    strategy: Strategy,
    placement: Placement,
    prices: Prices | KeptPrices,
    steps: int,
    detail: str = "auto",
) -> StepsInARow:
    """So many steps in a row: where the order reaches across steps, a layer waits for its own gradients alone."""
    made = Lowered(workload, strategy, placement, Known(prices), detail)
    gang, ends = made.launched(steps)
    return StepsInARow(made.step(gang), tuple(gang.numbers(made.roster, over) for over in ends))


Written = tuple[tuple[Share, ...], Pieces, list[Passes], Pace, list[float]]
"""What a gang is written from: shares of layers, pieces of the model, the passes of each, prices, the pace of each
stage."""


class Lowered:
    """A step on its way down: what its gang is written from, the gang, the step of all ranks."""

    def __init__(
        self,
        workload: Workload,
        strategy: Strategy,
        placement: Placement,
        known: Known | SeatPricer,
        detail: str,
        gpus: int | None = None,
    ) -> None:
        if detail not in DETAILS:
            raise StrategyError(f"there is no detail {detail!r}: use one of {', '.join(DETAILS)}")
        if placement.strategy != strategy:
            raise StrategyError("the placement is of another strategy: make it from the one that is lowered")
        self.known = known
        sized = known.at if isinstance(known, SeatPricer) else workload.at_batch
        self.sized = sized(strategy.micro_batch)
        check(strategy, self.sized, gpus)
        self.order, self.detail, self.roster = strategy.order, detail, Roster(placement)
        # Where gradients are launched in an order of their own, each layer is reduced by itself until then.
        bucket = self.order.bucket_bytes if self.order.is_plain else 0.0
        self.strategy = replace(strategy, order=Order(fusion=bucket, overlap=self.order.overlap))

    def gang(self) -> tuple[Gang, Layers]:
        """One rank of every stage, gradients in buckets as they are ready, and the layers it runs."""
        made = self._written(self.detail)
        written = script_of(self.sized, self.strategy, *made).gang()
        names, pieces = [layer.name for layer in self.sized.layers], made[1]
        return written, {names[at]: piece for piece in range(pieces.count) for at in pieces.of(piece)}

    def _written(self, detail: str) -> Written:
        known = self.known
        return self._of_seats(known) if isinstance(known, SeatPricer) else self._of_stages(known, detail)

    def _of_seats(self, known: SeatPricer) -> Written:
        """Every layer is a piece of its own, priced by itself."""
        shares, passes = known.pieces(self.strategy)
        pieces = cut(self.sized, self.strategy, shares, known.pace.listed)
        return shares, pieces, passes, known.pace, [1.0] * len(self.strategy.stage_parts)

    def _of_stages(self, known: Known, detail: str) -> Written:
        strategy = self.strategy
        shares = known.shares(self.sized, strategy)
        pieces = known.pieces(self.sized, strategy, shares)
        views = strategy.on_stages()

        def passes(condense: bool) -> list[Passes]:
            return known.passes(pieces, shares, views, condense=condense, apart=self.order.across_steps)

        made = passes(detail == "stage")
        if detail == "auto":
            ranks = [views[stage].replicas * views[stage].tensor for stage in pieces.homes]
            each = sum(piece.operations * many for piece, many in zip(made, ranks, strict=True))
            if strategy.micro_batches * each > MOST_OPERATIONS:
                made = passes(True)
        pace = [known.pace(stage, pieces, shares, view) for stage, view in enumerate(views)]
        return shares, pieces, made, known.walks.prices, pace

    def computing(self) -> StageTimes:
        """What the pieces compute for a micro-batch, for the clock of timetables; nothing is sent or reduced."""
        _, pieces, passes, _, pace = self._written("stage")
        each = list(zip(passes, pieces.homes, strict=True))
        kinds = (Pass.FORWARD, *((Pass.INPUT, Pass.WEIGHT) if self.strategy.splits_backward else (Pass.BACKWARD,)))
        return stage_times(*([mine.compute_s(kind) * pace[stage] for mine, stage in each] for kind in kinds))

    def one_step(self) -> Gang:
        """The gang of one step with its gradients in the order asked for."""
        return self.gang()[0] if self.order.is_plain else self.launched(1)[0]

    def launched(self, steps: int) -> tuple[Gang, tuple[NDArray[np.int64], ...]]:
        """The gang with its gradients in the order asked for, so many consecutive steps."""
        gang, layers = self.gang()
        return launched(gang, self.order, layers, steps)

    def step(self, gang: Gang) -> Step:
        samples = self.strategy.global_batch
        facts = {"samples": float(samples), "tokens": float(samples * max(self.sized.sequence, 1))}
        return gang.step(self.roster, self.flops, facts)

    @property
    def flops(self) -> float:
        """Arithmetic of the model in a step."""
        return self.sized.flops * self.strategy.data * self.strategy.micro_batches
