"""What of the error on llm-foundry's runs may be attention: they seem to have run another kernel than is priced.

Fused attention is priced as PyTorch runs it today. The scripts of 2023 choose FlashAttention in Triton by default, and
FlashAttention-2 is 1.3 to 2.5 times faster than that on an A100 (Dao, 2023). Here one factor for each GPU is fitted to
every tenth row and applied to all others, to see whether that is the reason. It is no part of the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from published_runs import Prediction, PublishedRun, llm_foundry
from ropewalk.device.pricer import pricer
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.source import open_workload

STRIDE = 10
"""Every tenth row of a GPU, in the order of the file, is fitted."""
TRIED = [1 + step / 20 for step in range(101)]


def attention_s(run: PublishedRun) -> float:
    """Seconds of a step that a GPU is priced for attention."""
    asked = llm_foundry(run)
    assert isinstance(asked.model, str)
    prices = pricer(asked.device, asked.precision)
    layers = open_workload(asked.model, run.micro_batch, run.sequence).layers
    fused = [op for layer in layers for op in layer.operators if isinstance(op, FusedAttention)]
    passes = 2 if run.recompute else 1
    once = sum(passes * prices.gpu(op.forward()) + prices.gpu(op.backward()) for op in fused)
    return once * run.batch / (run.data * run.micro_batch)


def with_slower_attention(predictions: Sequence[Prediction]) -> tuple[dict[str, float], list[Prediction]]:
    """The factor of each GPU, and the rows that were not fitted with attention as much slower."""
    factors: dict[str, float] = {}
    others: list[Prediction] = []
    for gpu in sorted({_generation(one) for one in predictions}):
        mine = [one for one in predictions if _generation(one) == gpu]
        spent = [attention_s(one.run) for one in mine]
        slower = {
            factor: [
                replace(one, seconds=one.seconds + (factor - 1) * part) for one, part in zip(mine, spent, strict=True)
            ]
            for factor in TRIED
        }
        factors[gpu] = min(
            TRIED, key=lambda factor: sum(math.log1p(one.error) ** 2 for one in slower[factor][::STRIDE])
        )
        others += [one for place, one in enumerate(slower[factors[gpu]]) if place % STRIDE]
    return factors, others


def _generation(prediction: Prediction) -> str:
    return prediction.run.accelerator.partition("_")[0]
