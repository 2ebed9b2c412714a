"""A step lowered for one GPU costs what the device says the model costs."""

import pytest
from tiny_models import step_time

from ropewalk.device.cost import step_cost
from ropewalk.device.pricer import pricer
from ropewalk.strategy import Placement, Strategy
from ropewalk.task.lower import lower
from ropewalk.workload.zoo import build


@pytest.mark.parametrize(
    ("model", "batch"), [("resnet50", 1), ("resnet50", 32), ("gpt2", 1), ("gpt2", 8), ("dlrm", 512)]
)
@pytest.mark.parametrize("detail", ["layer", "stage"])
def test_one_gpu_takes_the_cost_of_the_model(model, batch, detail):
    workload = build(model, batch=batch)
    prices = pricer("h200", "bf16")
    plan = Strategy(micro_batch=batch)
    step = lower(workload, plan, Placement(plan), prices, detail)
    assert step_time(step) == pytest.approx(step_cost(workload, prices).step_s, rel=1e-9)
