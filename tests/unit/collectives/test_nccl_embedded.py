"""Rings along the NVLinks of servers without switches."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ropewalk.collectives.act import Act
from ropewalk.collectives.nccl import Algorithm, library_for
from ropewalk.collectives.nccl.embedded import rings_along_links
from ropewalk.collectives.ring import ring_all_reduce
from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.prices import CollectivePrices
from ropewalk.fabric.expression import fabric
from ropewalk.hardware import Given, read_cluster
from ropewalk.task.nccl import nccl_template
from ropewalk.task.step import StepSketch
from ropewalk.task.transport import Transport
from ropewalk.training import NetworkUse
from ropewalk.training.network import expand_on, run_on

DGX_1V = Path(__file__).parents[2] / "data" / "topologies" / "dgx-1v.xml"


@pytest.mark.parametrize(("gpus", "rings"), [(3, 1), (4, 2), (6, 1), (8, 3)])
def test_rings_of_a_dgx_1_use_no_nvlink_twice(gpus, rings):
    network = fabric(DGX_1V)
    found = rings_along_links(network, np.arange(gpus, dtype=np.int32))
    assert len(found) == rings
    ring_all_reduce(found, both_ways=True).check()
    speed = dict(
        zip(zip(network.link_src.tolist(), network.link_dst.tolist(), strict=True), network.bandwidth, strict=True)
    )
    used = Counter(
        pair
        for order in found
        for one in zip(order, np.roll(order, -1).tolist(), strict=True)
        for pair in (one, one[::-1])
    )
    assert all(many * 25e9 <= speed[pair] for pair, many in used.items())


def test_where_a_switch_joins_gpus_rings_keep_the_order_of_the_ranks():
    assert rings_along_links(read_cluster("dgx-h100:1").fabric(), np.arange(8, dtype=np.int32)) == ()


def test_a_dgx_1_fills_all_six_nvlinks_and_a_step_takes_what_expect_says():
    cluster = read_cluster("1x8", Given(device="v100", network=str(DGX_1V)))
    prices, size = CollectivePrices(cluster, library_for(cluster)), 1 << 30
    expected = prices.expected(BENCHMARKS["all_reduce"], size, prices.everyone)
    assert size * 1.75 / expected.bytes_s == pytest.approx(0.8 * 150e9, rel=1e-3)
    use, network = NetworkUse(algorithm="nccl").settled("v100", cluster), cluster.fabric()
    sketch = StepSketch(8)
    sketch.collective(Act.ALL_REDUCE, range(8), size)
    took = run_on(sketch.step(), expand_on(sketch.step(), network, use), network, use).trace.makespan
    assert took == pytest.approx(expected.seconds, rel=1e-3)


def test_names_of_servers_are_their_files():
    named, filed = fabric("dgx-1v:8"), fabric(DGX_1V)
    links = [sorted(zip(one.link_src, one.link_dst, one.bandwidth, strict=True)) for one in (named, filed)]
    assert links[0] == links[1]


@pytest.mark.parametrize(
    ("device", "network", "busbw"),
    [("p100", "dgx-1p:8", 0.8 * 80e9), ("v100", "dgx-1v:4", 0.8 * 100e9), ("l40s", "pcie:8,2", 12 / 15.75 * 22e9)],
)
def test_rings_in_a_server_are_as_fast_as_its_narrowest_place(device, network, busbw):
    gpus = fabric(network).hosts
    cluster = read_cluster(f"1x{gpus}", Given(device=device, network=network))
    prices, size = CollectivePrices(cluster, library_for(cluster)), 1 << 32
    expected = prices.expected(BENCHMARKS["all_reduce"], size, prices.everyone)
    assert size * BENCHMARKS["all_reduce"].factor(gpus) / expected.bytes_s == pytest.approx(busbw, rel=1e-3)


def test_chains_along_rings_send_every_part_up_and_down_once():
    cycles = rings_along_links(fabric(DGX_1V), np.arange(8, dtype=np.int32))
    made = nccl_template(Act.ALL_REDUCE, Algorithm.TREE, (8,), Transport(), cycles)
    assert made.wire.sum() == pytest.approx(2 * 7)
