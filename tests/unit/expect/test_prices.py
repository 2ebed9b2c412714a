"""A collective takes NCCL's latency and the bytes of its busiest link, on the network that is simulated."""

from dataclasses import replace

import pytest

from ropewalk.collectives.nccl import Algorithm, library_for
from ropewalk.expect.benchmarks import BENCHMARKS, PRINTED
from ropewalk.expect.prices import CollectivePrices
from ropewalk.hardware import read_cluster


def prices_of(name, **library):
    cluster = read_cluster(name)
    return CollectivePrices(cluster, replace(library_for(cluster), **library))


@pytest.fixture(scope="module")
def two_servers():
    return prices_of("dgx-h100:2")


@pytest.mark.parametrize("name", PRINTED)
def test_no_benchmark_is_above_its_wires(two_servers, name):
    benchmark = BENCHMARKS[name]
    for algorithm in {run.algorithm for run in (two_servers.expected(benchmark, 1 << 34, two_servers.everyone).run,)}:
        wired = two_servers.wired(benchmark, two_servers.everyone, algorithm)
        assert wired.seconds_per_byte >= (wired.load / two_servers.fabric.bandwidth).max() * (1 - 1e-9)


def test_a_ring_inside_a_server_has_the_bandwidth_of_its_links():
    prices = prices_of("dgx-h100:1", algorithms=frozenset({Algorithm.RING}))
    benchmark = BENCHMARKS["all_reduce"]
    found = prices.expected(benchmark, 1 << 34, prices.everyone)
    assert (1 << 34) * 1.75 / found.bytes_s == pytest.approx(450e9 * 0.817)


def test_a_ring_between_servers_has_the_bandwidth_of_all_nics():
    prices = prices_of("dgx-h100:4")
    found = prices.expected(BENCHMARKS["all_gather"], 1 << 34, prices.everyone)
    assert (1 << 34) * 31 / 32 / found.bytes_s == pytest.approx(8 * 50e9 * 0.94)


def test_small_buffers_take_the_latency_and_large_ones_the_switches(two_servers):
    benchmark, everyone = BENCHMARKS["all_reduce"], two_servers.everyone
    assert two_servers.expected(benchmark, 8, everyone).name == "tree/ll"
    assert two_servers.expected(benchmark, 1 << 34, everyone).name == "nvls-tree/simple"


def test_one_pair_sends_over_one_nic_one_way(two_servers):
    found = two_servers.expected(BENCHMARKS["send"], 1 << 30, ((3, 11),))
    assert (1 << 30) / found.bytes_s == pytest.approx(50e9 * 0.94)
    assert (found.wired.load > 0).sum() == 2  # up to the leaf of the rail, and down from it


def test_groups_that_run_together_share_what_they_share(two_servers):
    alone = two_servers.expected(BENCHMARKS["sendrecv"], 1 << 30, ((0, 8),))
    beside = two_servers.expected(BENCHMARKS["sendrecv"], 1 << 30, ((0, 8), (1, 9)))
    assert beside.seconds == pytest.approx(alone.seconds)


@pytest.mark.parametrize("pair", [(0, 1), (3, 11), (3, 12)])
def test_a_pair_alone_takes_as_long_as_in_the_simulator(two_servers, pair):
    benchmark = BENCHMARKS["sendrecv"]
    quick = two_servers.wired(benchmark, (pair,), Algorithm.POINT_TO_POINT)
    simulated = two_servers._simulated(benchmark, (pair,), Algorithm.POINT_TO_POINT)
    assert quick.seconds_per_byte == pytest.approx(simulated.seconds_per_byte)
    assert quick.load == pytest.approx(simulated.load)
