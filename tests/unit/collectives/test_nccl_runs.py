"""NCCL's own numbers, put together as NCCL puts them together."""

import pytest

from ropewalk.collectives.act import Act
from ropewalk.collectives.nccl import Algorithm, Communicator, Generation, Protocol, runs_of

US = 1e-6


def run(act, group, name):
    return next(one for one in runs_of(act, group) if f"{one.algorithm}/{one.protocol}" == name)


def test_latencies_of_eight_hopper_gpus_are_base_and_hops():
    group = Communicator((8,), Generation.HOPPER)
    assert run(Act.ALL_REDUCE, group, "ring/ll").latency_s == pytest.approx((6.6 + 14 * 0.6) * US)
    assert run(Act.ALL_REDUCE, group, "tree/simple").latency_s == pytest.approx((8.4 + 2 * 7 * 4) * US)
    assert run(Act.ALL_REDUCE, group, "nvls/simple").latency_s == pytest.approx(25 * US)
    assert run(Act.ALL_GATHER, group, "ring/simple").latency_s == pytest.approx((8.4 + 7 * 3.4) * US)


def test_between_servers_rings_pay_for_crossing_and_trees_by_levels():
    group = Communicator((8,) * 4, Generation.AMPERE)
    assert run(Act.ALL_REDUCE, group, "ring/ll").latency_s == pytest.approx((6.6 + 56 * 1 + 6 * 2.7) * US)
    assert run(Act.ALL_REDUCE, group, "tree/ll").latency_s == pytest.approx((6.8 + 2 * (7 * 0.6 + 2 * 5)) * US)


def test_switches_add_up_from_hopper_on_and_only_with_nvlink():
    for group in (Communicator((8,), Generation.AMPERE), Communicator((8,), Generation.HOPPER, nvlink=False)):
        assert all(one.algorithm is not Algorithm.NVLS for one in runs_of(Act.ALL_REDUCE, group))


def test_what_is_forced_is_all_that_runs():
    forced = Communicator((8,), Generation.HOPPER, algorithms=frozenset({Algorithm.RING}))
    assert {one.algorithm for one in runs_of(Act.ALL_REDUCE, forced)} == {Algorithm.RING}
    forced = Communicator((8,), Generation.HOPPER, protocols=frozenset({Protocol.LL}))
    assert {one.protocol for one in runs_of(Act.ALL_REDUCE, forced)} == {Protocol.LL}


def test_one_gpu_per_server_gathers_by_trees_side_by_side():
    alone = Communicator((1,) * 16, Generation.HOPPER)
    pat = run(Act.ALL_GATHER, alone, "pat/simple")
    assert pat.latency_s == pytest.approx((8 + 4 * 14 / 3.5 + 16 * 2.8) * US)
    assert pat.share == 0.75
    assert pat.latency_s < run(Act.ALL_GATHER, alone, "ring/simple").latency_s / 3
    for act, group in ((Act.ALL_REDUCE, alone), (Act.ALL_GATHER, Communicator((2,) * 8, Generation.HOPPER))):
        assert all(one.algorithm is not Algorithm.PAT for one in runs_of(act, group))
