"""A search over strategies on a Ray cluster of two nodes gives the bytes that it gives here."""

import os
import sys

import pytest

pytest.importorskip("ray", reason="needs Ray: pip install 'ropewalk[ray]'")

import ray
from ray.cluster_utils import Cluster

from ropewalk.engines import engine_named
from ropewalk.hardware import on_network, read_cluster
from ropewalk.planner.on_ports import planned
from ropewalk.planner.planned import plan_of
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.plans import dumps

pytestmark = pytest.mark.extras

SMALL = Space(server=2, tensor=(1, 2), context=(1,), micro_batch=(1, 2), zero=(0, 1), recompute=("none",))


@pytest.fixture(scope="module")
def two_nodes():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    ray.init(address=cluster.address, log_to_driver=False, runtime_env=paths)
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.parametrize("network", ["rail-only", "wire"])
def test_two_nodes_plan_as_this_process_does(two_nodes, network):
    engine = engine_named("ray")
    assert engine.workers == 2
    cluster = on_network(read_cluster("2x2"), network)
    question = PlannerQuestion("gpt2", cluster, batch=8, sequence=64, space=SMALL)
    assert dumps(plan_of(planned(question, engine=engine))) == dumps(plan_of(planned(question)))
