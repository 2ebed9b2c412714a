"""In which order gradients travel: FIFO against priorities (ByteScheduler), fused (PACE) and streamed all-reduce.

VGG16 on four servers with 25 Gbps, each all-reduce with 2 ms to start up. Orders are those that `ropewalk overlap`
finds; what it decides by priority is an order that is the same on all ranks.
"""

from __future__ import annotations

from functools import cache, partial

from ropewalk import units
from ropewalk.hardware import Given, read_cluster
from ropewalk.lab.suite.claim import Claim, Sure
from ropewalk.lab.suite.steps import StepSetup
from ropewalk.lab.suite.testbed import Case, Recipe, TimeRatio
from ropewalk.overlap import study
from ropewalk.overlap.answer import OverlapAnswer
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.simulated import simulated
from ropewalk.task.transport import Transport
from ropewalk.training import NetworkUse, TrainingAnswer

SERVERS, SAMPLES, START_UP_S = 4, 32, 2e-3
THEOREM = "largest tail first is optimal on one link (ByteScheduler, PACE), derived independently and checked"
ORDERED = {"FIFO": "fifo", "priority": "priority", "fused": "fused", "streamed": "streamed"}


@cache
def found(seed: int) -> OverlapAnswer:
    """All orders of the model on these servers."""
    given = Given(device="v100", nic_bandwidth=units.bandwidth("25Gbps"), network="switch")
    return study.answer(
        OverlapQuestion(
            "vgg16",
            read_cluster(f"{SERVERS}x1", given),
            batch=SERVERS * SAMPLES,
            precision="fp16",
            network=NetworkUse(transport=Transport(start_up_s=START_UP_S)),
            seed=seed,
        )
    )


def ordered(method: str, seed: int) -> TrainingAnswer:
    """The step with its gradients in the order of one of the methods."""
    answer = found(seed)
    order = answer.method(method).order
    assert order is not None, "only all-reduces have an order in a step"
    return simulated(answer.question.training, order)


RECIPE = Recipe(
    tuple(
        Case(name, StepSetup(partial(ordered, method)), short=name in ("FIFO", "priority"))
        for name, method in ORDERED.items()
    ),
    (
        TimeRatio(
            "FIFO", "priority", Claim("no order is faster than priority order", THEOREM, Sure.DERIVED, least=0.98)
        ),
        TimeRatio(
            "priority", "fused", Claim("fusing saves start-ups and keeps the order", THEOREM, Sure.DERIVED, least=0.98)
        ),
        TimeRatio(
            "fused",
            "streamed",
            Claim("a layer starts when its own part of a fused all-reduce has arrived", THEOREM, Sure.DERIVED,
                  least=0.98),
        ),
        TimeRatio(
            "FIFO",
            "priority",
            Claim("up to 196 % faster over all configurations, mostly with parameter servers",
                  "ByteScheduler (SOSP 2019), abstract", Sure.ABSTRACT, least=1.0, most=2.96),
        ),
        TimeRatio(
            "FIFO",
            "fused",
            Claim("up to 36 % faster than the state of the art", "PACE (INFOCOM 2020), abstract", Sure.ABSTRACT, 1.36,
                  least=1.0),
        ),
    ),
    ("Compute times are those predicted for a V100.",),
)  # fmt: skip
