"""Packets of a lab whose flows take turns share links as max-min fair flows do; those of FIFO queues do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.fabric import LeafSpine, Torus
from ropewalk.lab.collective import collective_work
from ropewalk.lab.measure import speeds
from ropewalk.lab.network import FIFO, LabNetwork, LabSettings
from ropewalk.lab.predict import flow_level, predictions
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.request import routes_by_name

LEAF_SPINE, TORUS = LeafSpine(4, 4, 4, bandwidth=2.5e6), Torus((4, 4), 2.5e6)


def seconds(builder, collective, queue="fair", size=1_000_000):
    network = LabNetwork(builder.build(), settings=LabSettings(queue=queue))
    _, routes = routes_by_name(network.fabric, "default")
    work = collective_work(network, routes, LabQuestion(collective, size_bytes=size))
    fabric = replace(routes.fabric, bandwidth=speeds(network, {}), latency=0 * routes.fabric.latency)
    flows, case = flow_level(network, work.job.graph, replace(work.routes, fabric=fabric))
    return {one.level: one.seconds for one in predictions(case, flows, ("flow", "wire", "packet"))}


@pytest.mark.parametrize(
    ("builder", "collective"),
    [(LEAF_SPINE, "mesh"), (TORUS, "hips"), (TORUS, "forest"), (LEAF_SPINE, "ring")],
    ids=["mesh", "hips", "forest", "ring"],
)
def test_flows_that_take_turns_are_max_min_fair(builder, collective):
    found = seconds(builder, collective)
    assert found["flow"] < found["wire"] < 1.02 * found["flow"]
    assert found["packet"] == pytest.approx(found["wire"], rel=0.04)


def test_a_mesh_over_fifo_queues_is_slower_than_max_min():
    found = seconds(LEAF_SPINE, "mesh", FIFO)
    assert found["packet"] > 1.06 * found["flow"]
