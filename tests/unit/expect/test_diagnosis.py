"""The part that slow measurements share and fast ones do not is named; settings explain what is slow everywhere."""

from dataclasses import replace

import numpy as np
import pytest
from slowed_clusters import SIZE, measured

from ropewalk.collectives.nccl import library_for
from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.components import components_of
from ropewalk.expect.diagnosis import diagnosed
from ropewalk.expect.likelihood import scores
from ropewalk.expect.prices import CollectivePrices
from ropewalk.expect.read.who import Measurement
from ropewalk.expect.series import series_of
from ropewalk.expect.settings import SETTINGS
from ropewalk.expect.words import explanation, headline
from ropewalk.hardware import Given, read_cluster


def prices_of(name, **given):
    cluster = read_cluster(name, Given(**given))
    return CollectivePrices(cluster, library_for(cluster))


@pytest.fixture(scope="module")
def servers():
    return prices_of("dgx-h100:2")


def judged(prices, times):
    return diagnosed(series_of(times, prices), prices)


def slowed(prices, name, speed, asked):
    part = None if name is None else next(one for one in components_of(prices.fabric) if one.name == name)
    return judged(prices, measured(prices, asked, part, speed, np.random.default_rng(1), 0.02, 0.05))


RAILS = [("sendrecv", ((gpu, gpu + 8),)) for gpu in range(8)]
INSIDE = [("sendrecv", ((gpu, (gpu + 1) % 8),)) for gpu in range(8)]


def test_a_healthy_cluster_is_healthy(servers):
    found = slowed(servers, None, 1.0, RAILS + INSIDE)
    assert found.healthy
    assert headline(found) == "healthy: all 16 measurements are within the interval of a healthy cluster"
    assert explanation(found) == []


def test_the_nic_that_one_pair_has_alone_ties_with_that_of_its_partner(servers):
    found = slowed(servers, "gpu0.3-leaf3", 0.3, RAILS + INSIDE)
    assert not found.healthy
    assert {"gpu0.3-leaf3", "gpu1.3-leaf3", "leaf3"} <= set(found.best.names)
    assert found.best.speed == pytest.approx(0.3, rel=0.1)


def test_a_gpu_is_told_from_its_nic_by_pairs_inside_its_server(servers):
    found = slowed(servers, "gpu0.3", 0.3, RAILS + INSIDE)
    assert found.best.name == "gpu0.3"
    found = slowed(servers, "gpu0.3-nvswitch0", 0.3, RAILS + INSIDE)
    assert found.best.name == "gpu0.3-nvswitch0"
    assert "NVLink of GPU 3 of server 0" in explanation(found)[0]


def test_one_direction_is_told_by_sends(servers):
    sends = [("send", ((a, b),)) for gpu in range(8) for a, b in ((gpu, gpu + 8), (gpu + 8, gpu))]
    found = slowed(servers, "gpu0.3->leaf3", 0.3, sends)
    assert "gpu0.3->leaf3" in found.best.names
    assert "gpu0.3-leaf3" not in found.best.names


def test_a_part_slower_than_its_like_is_found_within_all_intervals(servers):
    sends = [("send", ((a, b),)) for a in range(8) for b in range(8) if a != b]
    found = slowed(servers, "gpu0.3-nvswitch0", 0.88, sends)
    assert not any(one.slow for one in found.series)
    assert not found.healthy
    assert found.best.name == "gpu0.3-nvswitch0"


@pytest.mark.parametrize("name", list(SETTINGS))
def test_each_setting_is_named_for_what_it_does_to_all_collectives(servers, name):
    changed = CollectivePrices(*SETTINGS[name].make(servers.cluster, servers.library))
    asked = [("all_reduce", servers.everyone), ("alltoall", servers.everyone), ("all_gather", servers.everyone),
             ("all_reduce", (tuple(range(8)),)), ("sendrecv", ((0, 8),))]  # fmt: skip
    times = [
        Measurement(one, SIZE, changed.expected(BENCHMARKS[one], SIZE, groups).seconds * 1.03, groups, "simulated")
        for one, groups in asked
    ]
    found = judged(servers, times)
    assert not found.healthy
    assert found.best.name == name


@pytest.mark.parametrize(("times", "also"), [(1.0, ""), (3.0, ", 1 is slower than in a healthy cluster")])
def test_wrong_results_are_unhealthy_however_fast_they_come(servers, times, also):
    usual = servers.expected(BENCHMARKS["all_reduce"], 1 << 30, servers.everyone).seconds
    measurement = Measurement("all_reduce", 1 << 30, usual * times, servers.everyone, "once", wrong=4)
    found = judged(servers, [measurement])
    assert not found.healthy
    assert headline(found) == f"unhealthy: 1 of 1 measurement has wrong results{also}"
    assert explanation(found)[0].startswith("data are corrupted in transit or in memory")
    assert (found.best is None) == (times == 1.0)
    assert found.series[0].rows[0].state == "wrong"


def test_one_measurement_alone_leaves_ties(servers):
    usual = servers.expected(BENCHMARKS["all_reduce"], 1 << 30, servers.everyone).seconds
    found = judged(servers, [Measurement("all_reduce", 1 << 30, usual * 3, servers.everyone, "once")])
    assert not found.healthy
    assert len(found.best.names) > 1 or found.ties


def test_everything_a_little_slow_has_no_guilty_part(servers):
    times = [
        Measurement(
            one, 1 << 30, servers.expected(BENCHMARKS[one], 1 << 30, groups).seconds * 1.25, groups, "simulated"
        )
        for one, groups in (*RAILS, *INSIDE)
    ]
    found = judged(servers, times)
    assert not found.healthy
    assert not found.explains or found.best.kind == "setting"


def test_scores_leave_the_deviation_of_a_kind_out():
    kind = np.array([0, 0, 1, 1])
    alike, one_off = np.log([[1.08], [1.08], [0.93], [0.93]]), np.log([[1.08], [0.93], [1.08], [0.93]])
    assert scores(alike, kind)[0] < scores(one_off, kind)[0]


def test_times_of_a_slow_link_are_those_of_the_simulator():
    prices = prices_of("4x2", device="a100")
    part = next(one for one in components_of(prices.fabric) if one.kind == "cable" and "leaf" in one.name)
    bandwidth = prices.fabric.bandwidth.copy()
    bandwidth[list(part.links)] *= 0.3
    slow = CollectivePrices(prices.cluster, prices.library)
    slow.fabric = replace(prices.fabric, bandwidth=bandwidth)
    for name in ("all_reduce", "alltoall", "sendrecv", "broadcast"):
        usual = prices.expected(BENCHMARKS[name], 1 << 30, prices.everyone)
        simulated = slow.wired(BENCHMARKS[name], prices.everyone, usual.run.algorithm).seconds_per_byte
        bound = (usual.wired.load / bandwidth).max()
        assert simulated == pytest.approx(max(bound, usual.wired.seconds_per_byte), rel=0.02), name


def test_latencies_alone_make_a_cluster_unhealthy_where_they_are_far_too_long(servers):
    usual = servers.expected(BENCHMARKS["all_reduce"], 8, servers.everyone).seconds
    for times, healthy in ((1.0, True), (4.0, True), (8.0, False)):
        found = judged(servers, [Measurement("all_reduce", 8, usual * times, servers.everyone, "once")])
        assert found.healthy is healthy


def test_runs_of_pairs_of_servers_name_the_server():
    prices = prices_of("3x4", device="h100", rails=True)
    both = [tuple(range(4 * a, 4 * a + 4)) + tuple(range(4 * b, 4 * b + 4)) for a, b in ((0, 1), (0, 2), (1, 2))]
    found = slowed(
        prices, "gpu2.1-leaf1", 0.4, [(name, (pair,)) for name in ("all_reduce", "alltoall") for pair in both]
    )
    assert "gpu2.1-leaf1" in found.best.names
    assert explanation(found)[0].startswith("best explained by one of 8 parts of server 2 that these measurements")


@pytest.mark.parametrize(("every", "times", "healthy"), [(28, 1.28, True), (28, 1.6, False), (4, 1.28, False)])
def test_a_few_of_many_measurements_are_a_little_slow_by_chance(servers, every, times, healthy):
    asked = [((a, b),) for a in range(8) for b in range(8) if a != b]
    usual = servers.expected(BENCHMARKS["send"], SIZE, asked[0]).seconds
    taken = [usual * (1.1 if place % every else times) for place in range(len(asked))]
    measurements = [Measurement("send", SIZE, one, who, "simulated") for who, one in zip(asked, taken, strict=True)]
    assert judged(servers, measurements).healthy is healthy
