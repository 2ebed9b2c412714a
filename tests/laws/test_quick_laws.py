"""Laws of quick steps: simulated by its gang a step takes as long as with all its ranks, on every network."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nearly import differences

from ropewalk.hardware import Given, read_cluster
from ropewalk.report.rank_groups import one_per_stage
from ropewalk.report.step_timeline import representatives
from ropewalk.strategy import Order, Part, Strategy
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.training.quick import QuickSteps
from ropewalk.training.quick_answer import quick_answer

MODEL = "gpt:layers=6,hidden=512,heads=8,vocabulary=4096"
SLOW = {"device": "a100", "nvlink_bandwidth": 20e9}
CLUSTERS = {
    "one NIC per server": ("4x4", Given(**SLOW, nics=1, nic_bandwidth=1e9), "default"),
    "two NICs per server": ("4x4", Given(**SLOW, nics=2, nic_bandwidth=1e9), "default"),
    "a NIC per GPU": ("4x4", Given(**SLOW, nics=4, nic_bandwidth=1e9, network="switch:16"), "default"),
    "rails": ("4x4", Given(**SLOW, nics=4, nic_bandwidth=1e9, rails=True), "default"),
    "oversubscribed": ("4x4", Given(**SLOW, nics=4, nic_bandwidth=1e9, network="leaf-spine:4x1x4"), "default"),
    "fat-tree": ("4x4", Given(**SLOW, nics=4, nic_bandwidth=1e9, network="fat-tree:4"), "default"),
    "torus": ("4x4", Given(**SLOW, nics=4, nic_bandwidth=1e9, network="torus:4x4"), "default"),
    "paths by hash": ("4x4", Given(**SLOW, nics=4, nic_bandwidth=1e9, network="fat-tree:4"), "ecmp"),
    "unequal servers": ("2x4,1x8", Given(**SLOW, nic_bandwidth=1e9), "default"),
}

TIES = "simulated_tasks", "bottleneck_link", "bottleneck"
"""What differs: the number of classes, and which of links that are full at the same moment holds a flow back."""


@cache
def quick_on(name):
    shape, options, routing = CLUSTERS[name]
    cluster = read_cluster(shape, options)
    network = NetworkUse(routing=routing)
    return QuickSteps(TrainingQuestion(MODEL, cluster=cluster, sequence=64, memory_check=False, network=network))


@st.composite
def strategies(draw):
    tensor, context = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 1, 2]))
    pipeline = draw(st.sampled_from([size for size in (1, 2, 4) if tensor * context * size <= 16]))
    names = ["1f1b", "gpipe", "zb-h1", "interleaved", "zb-v", "dualpipe"] if pipeline > 1 else ["1f1b"]
    schedule = draw(st.sampled_from(names))
    replicas = 16 // (tensor * pipeline)
    return Strategy(
        data=replicas // context,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        sequence_parallel=tensor > 1 and draw(st.booleans()),
        zero=draw(st.integers(0, 3)) if replicas > 1 else 0,
        micro_batch=draw(st.integers(1, 2)),
        micro_batches=2 * pipeline,
        interleave=2 if schedule == "interleaved" else 1,
        schedule=schedule,
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        order=Order(draw(st.sampled_from([1e6, 25e6])), overlap=draw(st.booleans())),
        scatter_gather=draw(st.booleans()),
    )


@st.composite
def in_parts(draw):
    """Four stages with their own replicas, opposite ones split alike, as DualPipe wants them."""
    near, far = ((draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 2]))) for _ in range(2))
    shape = [(near[0], near[2]), (far[0], far[2]), (far[1], far[2]), (near[1], near[2])]
    ends = np.cumsum([replicas * tensor for replicas, tensor in shape]).tolist()
    if ends[-1] > 16:
        shape, ends = [(2, 1), (3, 1), (1, 1), (1, 1)], [2, 5, 6, 7]
    parts = tuple(
        Part(2 * at, 2 * at + 1, tuple(range(end - replicas * tensor, end)), tensor)
        for at, (end, (replicas, tensor)) in enumerate(zip(ends, shape, strict=True))
    )
    schedule = draw(st.sampled_from(["1f1b", "zb-h1", "dualpipe"]))
    return Strategy(
        pipeline=4,
        parts=parts,
        sequence_parallel=max(tensor for _, tensor in shape) > 1 and draw(st.booleans()),
        zero=draw(st.integers(0, 3)) if schedule == "dualpipe" else 0,
        micro_batch=6,
        micro_batches=8,
        schedule=schedule,
        order=Order(draw(st.sampled_from([1e6, 25e6])), overlap=draw(st.booleans())),
    )


orders = st.sampled_from([None, None, "tp-pp-dp", "dp-tp-pp"])


@settings(max_examples=60)
@given(st.sampled_from(tuple(CLUSTERS)), st.one_of(strategies(), strategies(), in_parts()), orders)
def test_step_of_a_gang_has_the_times_and_all_statistics_of_that_of_all_ranks(name, strategy, order):
    quick = quick_on(name)
    question = replace(quick.question, decided=strategy, order=order, detail="stage")
    full, found = answer(question), quick_answer(quick, question)
    assert quick.run(strategy, order=order).step_time_s == pytest.approx(full.run.makespan, rel=1e-9)
    told, whole = found.as_json(), full.as_json()
    assert [gap for gap in differences(told, whole) if gap[0].split("/")[1] not in TIES] == []
    assert found.statistics.link_utilisation == pytest.approx(full.statistics.link_utilisation, rel=1e-9)
    groups = one_per_stage(full.stage_of_rank)
    assert representatives(found.run, groups)[0].tolist() == representatives(full.run, groups)[0].tolist()
