"""Chains on a Ray cluster of two nodes find what they find in this process."""

import os
import sys
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="needs Ray: pip install 'ropewalk[ray]'")

import ray
from ray.cluster_utils import Cluster
from tiny_seats import recommender_on_four

from ropewalk.codesign.chains import search_chains
from ropewalk.codesign.metropolis import SearchPatience
from ropewalk.errors import InputError

pytestmark = pytest.mark.extras


@pytest.fixture
def two_nodes():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    # Nodes import the setting of a chain by name, so they have to know the folder it is in.
    reference = str(Path(__file__).parent.parent / "reference")
    ray.init(
        address=cluster.address,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join([reference, *sys.path])}},
    )
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_chains_on_two_nodes_find_what_they_find_here(two_nodes):
    assert len([node for node in ray.nodes() if node["Alive"]]) == 2
    make = partial(recommender_on_four, 1e5)
    asked = {"chains": 4, "seed": 5, "patience": SearchPatience(200)}
    assert search_chains(make, engine="ray", **asked) == search_chains(make, workers=1, **asked)


def test_without_a_cluster_the_error_names_the_remedy(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(InputError, match="found no Ray cluster: start one with `ray start --head`"):
        search_chains(recommender_on_four, engine="ray", chains=1, seed=0)
