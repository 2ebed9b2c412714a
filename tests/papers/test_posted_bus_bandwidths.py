"""Bus bandwidths that people posted of healthy clusters, and what is expected of theirs.

None of these rows was used to fit anything. The bandwidth of rings inside A100 and H100 servers comes from other rows
(`training/network.py`), everything else from NCCL's own constants. That NCCL has 32 heads at most was added, with its
own numbers, after the rows of 72 GPUs were seen.
"""

from dataclasses import replace
from functools import cache

import pytest

from ropewalk.collectives.nccl import Algorithm, library_for
from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.interval import interval
from ropewalk.expect.prices import CollectivePrices
from ropewalk.hardware import Given, read_cluster

M, G = 1 << 20, 1 << 30
H100, A100_4NICS = Given(device="h100"), Given(device="a100", nics=4)
A800 = Given(device="a100", nvlink_bandwidth=200e9, nics=1)
POSTED = [
    ("nccl-tests#309", "1x8", H100, "ring", "all_reduce", 16 * G, 368.76),
    ("nccl#1455", "1x8", H100, None, "all_reduce", 2 * G, 480),
    ("nccl#1455", "1x7", H100, None, "all_reduce", 2 * G, 460),
    ("nccl#1455", "1x6", H100, None, "all_reduce", 2 * G, 440),
    ("nccl#1455", "1x5", H100, None, "all_reduce", 2 * G, 420),
    ("nccl#1455", "1x4", H100, None, "all_reduce", 2 * G, 370),
    ("nccl-tests#347", "1x8", H100, None, "all_reduce", 8 * G, 479.41),
    ("nccl-tests#290", "1x8", H100, None, "all_reduce", 4 * G, 476),
    ("nccl-tests#272", "1x8", Given(device="h200"), None, "all_reduce", 4 * G, 475),
    ("nccl#1374, H800", "1x8", replace(H100, nvlink_bandwidth=200e9), None, "all_reduce", G, 215),
    ("NCCL Inspector's manual", "1x8", H100, None, "all_reduce", 16 * G, 485.12),
    ("NCCL Inspector's manual", "1x8", H100, None, "reduce_scatter", 16 * G, 366.13),
    ("lixueduan.com, GB200", "1x8", Given(device="gb200"), None, "all_reduce", 16 * G, 811),
    ("nccl#2140", "1x8", H100, "ring", "all_reduce", 16 * G, 370),
    ("nccl#2140", "1x8", H100, None, "all_reduce", 16 * G, 480),
    ("nccl#2140", "1x8", Given(device="b300"), "ring", "all_reduce", 16 * G, 695),
    ("nccl#2140", "1x8", Given(device="b300"), None, "all_reduce", 16 * G, 845),
    ("coreweave/nccl-tests#43", "gb200-nvl72:1", Given(), None, "all_reduce", 4 * G, 839.16),
    ("coreweave/nccl-tests#43", "gb200-nvl72:1", Given(), None, "all_reduce", 8 * G, 834.57),
    ("nccl-tests#309", "dgx-h100:2", Given(), None, "all_reduce", 16 * G, 470),
    ("nccl-tests#309", "dgx-h100:4", Given(), None, "all_reduce", 16 * G, 365.84),
    ("d-robotics, 4 NICs", "2x8", replace(H100, nics=4), None, "all_reduce", 8 * G, 353.85),
    ("d-robotics, its target", "dgx-h100:2", Given(), None, "all_reduce", 8 * G, 491.84),
    ("nccl#412, A800, as it should be", "12x8", A800, None, "all_reduce", 8 * G, 24),
    ("nccl#412, A800, as it should be", "1x8", A800, None, "all_reduce", 8 * G, 160),
    ("nccl-tests#149", "1x8", Given(device="a100"), None, "all_reduce", G, 217),
    ("nccl-tests#252", "2x4", A100_4NICS, "ring", "all_reduce", G, 93.58),
    ("nccl-tests#252", "2x4", A100_4NICS, "ring", "all_reduce", 8 * G, 95.1),
    ("nccl-tests#119", "3x8", A100_4NICS, None, "all_reduce", 133169160, 95.74),
    ("nccl#1218", "dgx-h100:32", Given(), None, "all_reduce", 2 * G, 340),
    ("AIConfigurator, NCCL 2.29", "1x8", H100, None, "alltoall", 512 * M, 315),
    ("AIConfigurator, NCCL 2.29", "1x8", H100, None, "alltoall", 128 * M, 292),
    ("AIConfigurator, NCCL 2.23", "1x4", H100, None, "alltoall", 512 * M, 315),
    ("AIConfigurator, NCCL 2.29", "1x8", Given(device="b200"), None, "alltoall", 512 * M, 563),
    ("ml-engineering, RCCL", "1x8", Given(device="mi300x"), None, "all_reduce", 4 * G, 312.9),
]
EXCHANGES = [
    ("d-robotics, 4 NICs", "2x8", replace(H100, nics=4), None, "alltoall", 8 * G, 36.83),
    ("d-robotics, its target", "dgx-h100:2", Given(), None, "alltoall", 8 * G, 76.54),
]
COLUMNS = ("source", "shape", "given", "forced", "name", "size", "busbw")


@pytest.mark.parametrize(COLUMNS, POSTED)
def test_posted_bandwidths_are_expected_within_12_percent(source, shape, given, forced, name, size, busbw):
    assert expected(source, shape, given, forced, name, size, busbw) == pytest.approx(busbw, rel=0.12), source


@pytest.mark.parametrize(COLUMNS, EXCHANGES)
def test_all_to_alls_between_servers_are_expected_within_20_percent(source, shape, given, forced, name, size, busbw):
    assert expected(source, shape, given, forced, name, size, busbw) == pytest.approx(busbw, rel=0.2), source


def expected(source, shape, given, forced, name, size, busbw):
    """GB/s of bus bandwidth; what was posted is within the interval of healthy clusters."""
    prices = prices_of(shape, given, forced)
    found = prices.expected(BENCHMARKS[name], size, prices.everyone)
    moved = size * BENCHMARKS[name].factor(prices.cluster.gpus)
    assert interval(found.latency_s, found.bytes_s).holds(moved / (busbw * 1e9)), source
    return moved / found.seconds / 1e9


@cache
def prices_of(shape, given, forced):
    cluster = read_cluster(shape, given)
    library = library_for(cluster)
    return CollectivePrices(cluster, replace(library, algorithms=frozenset({Algorithm(forced)})) if forced else library)
