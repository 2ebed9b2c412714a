"""NCCL's choice in a training step is the one that `expect` prints, with the same time."""

import numpy as np
import pytest

from ropewalk.collectives.act import Act
from ropewalk.collectives.nccl import Algorithm, chosen, library_for
from ropewalk.collectives.nccl.choice import wire_seconds
from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.prices import CollectivePrices
from ropewalk.hardware import Given, read_cluster
from ropewalk.strategy import Strategy
from ropewalk.task.nccl import nccl_template, wires_of
from ropewalk.task.step import StepSketch
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.training.network import expand_on, run_on
from ropewalk.training.quick import QuickSteps

CLUSTERS = {
    "eight H100": ("1x8", Given(device="h100")),
    "two DGX H100": ("dgx-h100:2", Given()),
    "four servers of one A100": ("4x1", Given(device="a100")),
    "eight B200": ("1x8", Given(device="b200")),
    "T4s on PCI Express": ("2x4", Given(device="t4")),
}
PATH_S = 3e-6
"""Of the network's own latency, which `expect` leaves to NCCL's latencies."""


@pytest.mark.parametrize("where", CLUSTERS)
@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "alltoall"])
def test_a_collective_takes_in_a_step_what_expect_says(where, name):
    cluster = read_cluster(*CLUSTERS[where])
    prices, benchmark = CollectivePrices(cluster, library_for(cluster)), BENCHMARKS[name]
    use, fabric = NetworkUse(algorithm="nccl").settled(cluster.device, cluster), cluster.fabric()
    for size in (1 << 12, 1 << 20, 1 << 24, 1 << 30):
        sketch = StepSketch(fabric.hosts)
        sketch.collective(benchmark.make, range(fabric.hosts), size)
        expansion = expand_on(sketch.step(), fabric, use)
        took = run_on(sketch.step(), expansion, fabric, use).trace.makespan
        expected = prices.expected(benchmark, size, prices.everyone)
        assert expansion.kinds[0].name == f"nccl {expected.name}"
        assert took == pytest.approx(expected.seconds, rel=0.01, abs=PATH_S)


@pytest.mark.parametrize("servers", [(8,), (2,), (8, 8), (4, 4, 4), (8,) * 4, (1,) * 6, (2,) * 8])
@pytest.mark.parametrize("act", [Act.ALL_REDUCE, Act.ALL_GATHER, Act.ALL_TO_ALL])
def test_what_nccl_counts_for_a_byte_is_the_busiest_link_next_to_a_gpu(servers, act):
    cluster = read_cluster(f"dgx-h100:{len(servers)}")
    library = library_for(cluster)
    group, place = library.communicator(servers), np.repeat(np.arange(len(servers)), servers)
    algorithms = [Algorithm.POINT_TO_POINT] if act is Act.ALL_TO_ALL else [Algorithm.RING]
    algorithms += [Algorithm.TREE] if act is Act.ALL_REDUCE else []
    for algorithm in algorithms:
        made = nccl_template(act, algorithm, servers, wires_of(library, algorithm))
        src, dst, wire = (column[1:-1] for column in (made.src, made.dst, made.wire))
        inside = place[src] == place[dst]
        sent = np.bincount(src, np.where(inside, wire, 0.0)).max() / library.inside_bytes_s
        left = np.bincount(place[src], np.where(inside, 0.0, wire)).max() / (group.nics * library.nic_bytes_s)
        assert wire_seconds(act, group, algorithm) == pytest.approx(max(sent, left), rel=0.01)


@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(tensor=4, data=4, sequence_parallel=True, zero=1, micro_batches=2),
        Strategy(data=16, zero=3),
        Strategy(tensor=2, pipeline=2, data=4, micro_batches=4),
    ],
)
def test_gangs_and_all_ranks_agree_where_nccl_chooses(strategy):
    asked = TrainingQuestion(
        "llama-3.2-1b:layers=4,stack=megatron", read_cluster("dgx-h100:2"), decided=strategy, sequence=2048,
        detail="stage",
    )  # fmt: skip
    full = answer(asked)
    assert full.question.network.algorithm == "nccl"
    assert QuickSteps(asked).run(strategy).step_time_s == pytest.approx(full.statistics.step_time_s, rel=1e-9)


def test_small_and_large_collectives_of_a_group_run_differently():
    library = library_for(read_cluster("dgx-h100:2"))
    runs = [chosen(Act.ALL_REDUCE, library.communicator((8, 8)), size) for size in (1 << 12, 1 << 22, 1 << 32)]
    assert [f"{one.algorithm}/{one.protocol}" for one in runs] == ["tree/ll", "tree/ll128", "nvls-tree/simple"]
