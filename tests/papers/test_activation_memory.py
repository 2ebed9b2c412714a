"""Activations of Megatron GPTs against Korthikanti et al., Reducing Activation Recomputation (2022), Table 2.

Bytes of one layer in units of s b h; with a heads and a sequence of s, the scores add 5 a s / h. The formulas are
exact, so no tolerance beyond rounding is given.
"""

import pytest

from ropewalk.device.numbers import Numbers
from ropewalk.strategy import Strategy, shares_of
from ropewalk.strategy.shares import kept_bytes
from ropewalk.workload.zoo import build
from ropewalk.workload.zoo.megatron import SHAPES


@pytest.mark.parametrize("model", ["megatron-22b", "megatron-175b", "megatron-530b"])
@pytest.mark.parametrize(
    ("sequence_parallel", "recompute", "formula"),
    [
        (False, "none", lambda scores, t: 10 + 24 / t + scores / t),
        (True, "none", lambda scores, t: (34 + scores) / t),
        (False, "selective", lambda scores, t: 10 + 24 / t),
        (True, "selective", lambda scores, t: 34 / t),
    ],
)
def test_a_layer_keeps_what_the_paper_says(model, sequence_parallel, recompute, formula):
    plan = Strategy(tensor=8, sequence_parallel=sequence_parallel, recompute=recompute)
    shape, workload = SHAPES[model], build(model, batch=1)
    block = shares_of(workload, plan)[1]
    scores = 5 * shape.heads * shape.sequence / shape.hidden
    kept = kept_bytes(block, Numbers(2.0)) / (shape.sequence * shape.hidden)
    assert kept == pytest.approx(formula(scores, plan.tensor), rel=1e-12)
