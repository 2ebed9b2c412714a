"""Lower a workload and a strategy to a training step: what every rank computes, when it meets whom, what it sends.

The rules, each of them as the frameworks that people use do it:

- A rank computes one thing at a time, in the order of its timetable. Meetings inside a layer (tensor, context and
  expert parallelism) stop it until they are over (`moves`). Of two passes side by side (DualPipe) one computes while
  the other meets; both hand on their results when both have ended.
- Gradients of weights that are put off (zero bubble) are a pass of their own without meetings; buckets follow them.
- Activations and their gradients go from stage to stage as soon as they are computed, each direction in order. Each
  tensor rank sends its part and the receivers gather it, or each sends all (`Strategy.scatter_gather`).
- Gradients are reduced bucket by bucket, in order, while the last micro-batch's backward pass goes on. ZeRO-1
  scatters the sums and gathers weights after the update; ZeRO-2 does so for every micro-batch, since gradients have
  no other place to be; ZeRO-3 gathers the weights of a layer before each of its passes, one layer ahead, and scatters
  its gradients after each backward pass. A layer whose weights have just been used is not gathered again.
  Without `Strategy.regather` weights are kept from the forward to the backward pass.
- Where stages keep two copies of the model, gradients are reduced over the ranks of both.
- An embedding that first and last stage share is summed between the two after all other gradients.
- The optimiser's update comes last; under ZeRO a rank updates its part.
- Hosts launch ahead of their GPUs and wait for nothing: a rank is slowed down where launching its whole step takes
  longer than computing it (`Pace`).

Not modelled: clipping of gradients, statistics over ranks, loading of data.
"""

from __future__ import annotations

from ropewalk.device.work import Work
from ropewalk.errors import StrategyError
from ropewalk.strategy.checks import check
from ropewalk.strategy.memory import updated
from ropewalk.strategy.placement import Placement
from ropewalk.strategy.prices import Pace, PriceList, Prices, pace_of
from ropewalk.strategy.shares import Share, computed_again, shares_of
from ropewalk.strategy.stages import Pieces, cut
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.ending import finish
from ropewalk.task.lower.passes import Passes, passes_of
from ropewalk.task.lower.writer import Writer
from ropewalk.task.step import Step
from ropewalk.workload.exchange import Exchange
from ropewalk.workload.workload import Workload

MOST_OPERATIONS = 2_000_000
"""Operations times the ranks in each, up to which `auto` keeps every layer apart."""
DETAILS = ("auto", "layer", "stage")


def lower(
    workload: Workload,
    strategy: Strategy,
    placement: Placement,
    prices: Prices | PriceList,
    detail: str = "auto",
) -> Step:
    """The step of this model under this strategy.

    `detail` says how finely: `layer` keeps every computation and collective of every layer, `stage` sums up what lies
    between two moments at which others than tensor ranks wait; `auto` takes `layer` where that is small enough.
    """
    if detail not in DETAILS:
        raise StrategyError(f"there is no detail {detail!r}: use one of {', '.join(DETAILS)}")
    listed = prices if isinstance(prices, PriceList) else PriceList(prices)
    sized = workload.at_batch(strategy.micro_batch)
    check(strategy, sized)
    if placement.strategy != strategy:
        raise StrategyError("the placement is of another strategy: make it from the one that is lowered")
    shares = shares_of(sized, strategy)
    pieces = cut(sized, strategy, shares, listed)
    paces = [pace_of(listed, _work(stage, pieces, shares, strategy, listed)) for stage in range(strategy.pipeline)]
    passes = _passes(pieces, shares, strategy, paces, condense=detail == "stage")
    if detail == "auto":
        operations = strategy.micro_batches * sum(piece.operations for piece in passes)
        if operations * strategy.replicas * strategy.tensor > MOST_OPERATIONS:
            passes = _passes(pieces, shares, strategy, paces, condense=True)
    writer = Writer(sized, strategy, shares, pieces, passes, paces)
    writer.run_schedule()
    finish(writer)
    samples = strategy.global_batch
    flops = (sized.forward_flops() + sized.backward_flops()) * strategy.data * strategy.micro_batches
    facts = {"samples": float(samples), "tokens": float(samples * max(sized.sequence, 1))}
    return writer.gang.step(placement, flops, facts)


def _work(stage: int, pieces: Pieces, shares: tuple[Share, ...], strategy: Strategy, listed: PriceList) -> Work:
    """All that a rank of a stage computes in a step, with what it computes again."""
    held = [shares[at] for at in pieces.layers_of_stage(stage)]
    known: dict[tuple[int, str], Work] = {}
    total = Work()
    for share in held:
        # Layers that are alike have the same tuple of operators: to compare all that is in it takes far longer.
        alike = id(share.layer.operators), share.recompute
        if alike not in known:
            operators = tuple(op for op in share.layer.operators if not isinstance(op, Exchange))
            again = listed.forward(computed_again(share))
            known[alike] = listed.forward(operators) + listed.backward(operators) + again
        total += known[alike]
    many = strategy.micro_batches
    return Work(many * total.gpu_s, many * total.host_s) + listed.update(*updated(strategy, held), strategy.optimiser)


def _passes(
    pieces: Pieces, shares: tuple[Share, ...], strategy: Strategy, paces: list[Pace], condense: bool
) -> list[Passes]:
    def name(piece: int) -> str:
        stage = pieces.stage(piece)
        inner = f".{pieces.on_stage(stage).index(piece)}" if len(pieces.homes) > strategy.pipeline else ""
        return f"stage {stage}{inner}"

    found = []
    for piece, stage in enumerate(pieces.homes):
        mine = pieces.of(piece)
        beside = [at for at in pieces.layers_of_stage(stage) if at not in mine]
        found.append(passes_of(mine, shares, strategy, paces[stage], name(piece), condense=condense, beside=beside))
    return found
