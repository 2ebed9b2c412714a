"""Stages summed up take as long as layer after layer, on fabrics too where tensor ranks have dedicated links."""

import numpy as np
import pytest
from tiny_models import FlopPrices, transformer

from ropewalk.fabric import LeafSpine, ServerFabric, ServerGroup
from ropewalk.routing import router_for
from ropewalk.sim import simulate
from ropewalk.strategy import Order, Placement, Strategy
from ropewalk.task.expand import expand
from ropewalk.task.lower import lower
from ropewalk.task.step import Act

FABRIC = ServerFabric(LeafSpine(4, 2, 4, bandwidth=50.0), (ServerGroup(4, 4, 400.0),)).build()


class Quick(FlopPrices):
    """As long as communication takes: 10^5 operations a second."""

    def forward(self, operators):
        return super().forward(operators) / 1e5

    def backward(self, operators):
        return super().backward(operators) / 1e5

    def weight(self, operators):
        return super().weight(operators) / 1e5

    def update(self, parameters, tensors, optimiser="adamw"):
        return parameters / 1e5


def taken(step):
    expansion = expand(step, np.arange(step.ranks), FABRIC)
    routes = router_for(FABRIC).make(0)(FABRIC, *expansion.pairs())
    return simulate(expansion.graph, routes).makespan


@pytest.mark.parametrize(
    "plan",
    [
        Strategy(tensor=4, pipeline=4, micro_batches=6, scatter_gather=False),
        Strategy(tensor=4, pipeline=2, data=2, micro_batches=3, sequence_parallel=True, order=Order(9000.0)),
        Strategy(tensor=4, data=4, zero=1, micro_batches=2, recompute="full"),
        Strategy(tensor=4, pipeline=4, interleave=2, schedule="interleaved", micro_batches=4, sequence_parallel=True),
    ],
    ids=Strategy.said,
)
def test_summing_up_stages_changes_no_simulated_time(plan):
    model = transformer(8)
    fine, coarse = (lower(model, plan, Placement(plan), Quick(), detail) for detail in ("layer", "stage"))
    assert coarse.operations < fine.operations
    whole = taken(fine)
    assert taken(coarse) == pytest.approx(whole, rel=1e-9)
    computing = fine.amount[(fine.act == Act.COMPUTE) & (fine.rank == 0)].sum()
    assert whole > 1.05 * computing  # communication is not lost in the noise
