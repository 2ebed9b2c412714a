"""DAPPLE: early backward against GPipe, BERT-48 in two stages on two servers with 25 Gbps."""

from __future__ import annotations

from functools import partial

from ropewalk import units
from ropewalk.hardware import Given, read_cluster
from ropewalk.lab.suite.claim import Claim, Sure
from ropewalk.lab.suite.steps import StepSetup
from ropewalk.lab.suite.testbed import Case, Recipe, TimeRatio
from ropewalk.strategy import Strategy
from ropewalk.task.transport import Transport
from ropewalk.training import NetworkUse, TrainingAnswer, TrainingQuestion, answer

MICRO_BATCH = 2


def step(schedule: str, micro_batches: int, seed: int) -> TrainingAnswer:
    """A step of two stages."""
    given = Given(device="v100", nic_bandwidth=units.bandwidth("25Gbps"), network="switch")
    return answer(
        TrainingQuestion(
            "bert-48",
            read_cluster("2x1", given),
            batch=MICRO_BATCH * micro_batches,
            micro_batch=MICRO_BATCH,
            pipeline=2,
            precision="fp16",
            usual=Strategy(schedule=schedule),
            network=NetworkUse(transport=Transport(), seed=seed),
            detail="stage",
            memory_check=False,
        )
    )


RECIPE = Recipe(
    (
        Case("DAPPLE, 16 micro-batches", StepSetup(partial(step, "1f1b", 16)), short=True),
        Case("GPipe, 16 micro-batches", StepSetup(partial(step, "gpipe", 16))),
        Case("GPipe, 2 micro-batches", StepSetup(partial(step, "gpipe", 2)), short=True),
    ),
    (
        TimeRatio(
            "GPipe, 16 micro-batches",
            "DAPPLE, 16 micro-batches",
            Claim("early backward saves memory but no time where GPipe has room for equally many micro-batches",
                  "DAPPLE (PPoPP 2021), schedule theory, derived independently", Sure.DERIVED, 1.0),
        ),
        TimeRatio(
            "GPipe, 2 micro-batches",
            "DAPPLE, 16 micro-batches",
            Claim("1.6 times the throughput of GPipe, which has memory for two micro-batches",
                  "DAPPLE (PPoPP 2021), abstract", Sure.ABSTRACT, 1.6),
        ),
    ),
    ("Compute times are those predicted for a V100.",),
)  # fmt: skip
