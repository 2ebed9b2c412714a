"""Programs run for real, by eight processes over loopback: what PyTorch's own collectives compute, they compute."""

from __future__ import annotations

import pytest
from optimum_worlds import both_ways, fabric_of, known_fabric, known_fabrics

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

import execute_jobs as jobs
import numpy as np

from ropewalk.collectives import (
    binomial_broadcast,
    chain_reduce,
    dedicated_servers,
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    hierarchical_all_to_all,
    hips_two_levels,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    shift_all_to_all,
)
from ropewalk.collectives.all_to_all import all_to_all_schedule
from ropewalk.collectives.forest import all_gather_forest, all_reduce_forest, broadcast_forest, reduce_scatter_forest
from ropewalk.collectives.forest.program import forest_schedule
from ropewalk.collectives.optimum import network_of
from ropewalk.errors import ProgramError
from ropewalk.execute import NUMBERS, LocalRanks, run_locally

pytestmark = pytest.mark.extras

RANKS = 8


@pytest.fixture(scope="module")
def processes():
    with LocalRanks(RANKS, timeout_s=600) as started:
        yield started


def _dgx1v_with_a_dead_link():
    known = next(known for known in known_fabrics() if known["name"] == "dgx1v")
    return known_fabric({**known, "duplex": [link for link in known["duplex"] if {link[0], link[1]} != {0, 1}]})


def _mixed_generations():
    """Four slow GPUs behind one switch, four fast ones behind another, each with a NIC to a third."""
    inside = [(gpu, 8 + gpu // 4, 450 if gpu // 4 else 300) for gpu in range(8)]
    nics = [(gpu, 10, 50 if gpu // 4 else 25) for gpu in range(8)]
    return fabric_of(8, 3, both_ways([*inside, *nics]))


def _forest(make, fabric, collective, segments=1, **options):
    return forest_schedule(make(network_of(fabric, **options)), collective, segments, relays_as_ranks=True)


WORLDS = {
    "ring both ways": (lambda: ring_all_reduce([range(8)], both_ways=True), "allreduce"),
    "hierarchy": (lambda: hips_two_levels(2, 4).all_reduce("hips"), "allreduce"),
    "halving and doubling": (lambda: halving_doubling_all_reduce(8), "allreduce"),
    "double tree": (lambda: double_tree_all_reduce(8, segments=4), "allreduce"),
    "two dedicated servers": (lambda: dedicated_servers(6, servers=2), "allreduce"),
    "ring gathers": (lambda: ring_all_gather([range(8), [0, 3, 6, 1, 4, 7, 2, 5]]), "allgather"),
    "ring scatters": (lambda: ring_reduce_scatter([range(8)], both_ways=True), "reducescatter"),
    "binomial tree": (lambda: binomial_broadcast(8, root=3), "broadcast"),
    "chain": (lambda: chain_reduce((8,), segments=3, root=5), "reduce"),
    "shifts": (lambda: shift_all_to_all(8), "alltoall"),
    "shifts of groups": (lambda: hierarchical_all_to_all(4, 2), "alltoall"),
    "forest around a dead link": (
        lambda: _forest(all_reduce_forest, _dgx1v_with_a_dead_link(), "allreduce", segments=2),
        "allreduce",
    ),
    "forest over two generations": (
        lambda: _forest(all_reduce_forest, _mixed_generations(), "allreduce"),
        "allreduce",
    ),
    "gathering forest": (lambda: _forest(all_gather_forest, _dgx1v_with_a_dead_link(), "allgather"), "allgather"),
    "gathering forest of unequal shards": (
        lambda: _forest(all_gather_forest, _mixed_generations(), "allgather", shards=[1, 2, 0, 1, 1, 3, 1, 1]),
        "allgather",
    ),
    "scattering forest": (
        lambda: _forest(reduce_scatter_forest, _mixed_generations(), "reducescatter"),
        "reducescatter",
    ),
    "spreading forest": (
        lambda: _forest(lambda network: broadcast_forest(network, 4), _mixed_generations(), "broadcast", segments=3),
        "broadcast",
    ),
    "balanced all-to-all": (
        lambda: all_to_all_schedule(network_of(_dgx1v_with_a_dead_link()), store_and_forward=True, segments=2),
        "alltoall",
    ),
}


@pytest.mark.parametrize("world", WORLDS)
def test_a_program_computes_what_pytorch_computes(processes, world):
    make, collective = WORLDS[world]
    report = run_locally(make(), collective, sizes=[20, 100_001], repeats=1, processes=processes)
    assert [(row.dtype, row.agrees) for row in report.rows] == [("int64", True)] * 2 + [("float32", True)] * 2
    assert [row.max_error for row in report.rows[:2]] == [0.0, 0.0]
    assert all(row.seconds > 0 and row.torch_seconds > 0 for row in report.rows)


def test_every_type_of_numbers_agrees(processes):
    seen = []
    report = run_locally(
        hips_two_levels(4, 2).all_reduce("hips"),
        "allreduce",
        sizes=[4000],
        dtypes=list(NUMBERS),
        repeats=1,
        processes=processes,
        progress=lambda done, of, now: seen.append((done, of)),
    )
    assert report.agrees
    assert [row.tolerance == 0 for row in report.rows] == [dtype.strip("u").startswith("int") for dtype in NUMBERS]
    assert seen == [(done, len(NUMBERS)) for done in range(len(NUMBERS) + 1)]


def _told(processes, job):
    return processes.call(job, [()] * RANKS)


def test_all_reduces_work_in_place_on_tensors_of_any_shape(processes):
    wide = [[(8 * (c + 10 * r) + 28) * 8 if c % 2 == 0 else None for c in range(10)] for r in range(2)]
    for rank, (same, same_lone, plain, columns, lone, shape) in enumerate(_told(processes, jobs.summed_in_place)):
        assert same
        assert same_lone
        assert plain == [[28, 36, 44], [52, 60, 68]]
        assert lone == 28
        assert shape == (2, 5)
        for row, expected in zip(columns, wide, strict=True):
            assert row[::2] == expected[::2]
            assert [(value - rank) % 10 for value in row[1::2]] == [1, 3, 5, 7, 9]  # as they were


def test_averages_do_not_overflow_on_the_way(processes):
    for large, shard, refusal in _told(processes, jobs.averaged):
        assert large == [49_152.0] * 5  # three times a power of two: every sum of eighths is exact
        assert shard == [3.5, 3.5]
        assert "torch.int64 has no averages" in refusal


def test_results_go_where_the_caller_wants_them(processes):
    for everything, short, other in _told(processes, jobs.given_an_output):
        assert everything == [[10 * rank, -10 * rank] for rank in range(RANKS)]
        assert "the output of rank" in short
        assert "give one of 8 elements" in short
        assert "make them equal" in other


def test_types_that_the_backend_cannot_reduce_are_summed_all_the_same(processes):
    for small, imaginary, flags, sent, refusal in _told(processes, jobs.odd_types):
        assert small == [0, 28, 56, 84, 112]
        assert imaginary == [8j, 2 * 8 + 28]
        assert flags == [True, False]
        assert sent == [1.0] * 4
        assert "reduces, which PyTorch cannot do for torch.float8_e4m3fn" in refusal


def test_ranks_that_only_forward_keep_their_tensors(processes):
    assert _told(processes, jobs.forwarded) == [[15] * 7] * 6 + [[6] * 7, [7] * 7]


def test_two_groups_run_at_the_same_time(processes):
    assert _told(processes, jobs.in_two_groups) == [[12, 4], [16, 4]] * 4


def test_a_group_of_another_size_and_hooks_that_are_no_all_reduce_are_refused(processes):
    for wrong_size, wrong_hook, gather, servers in _told(processes, jobs.wrong_sizes):
        assert wrong_size == wrong_hook
        assert wrong_size.startswith("mesh all-reduce is for 4 ranks, but the process group has 8: start 4 processes")
        assert "give an all-reduce" in gather
        assert "give an all-reduce" in servers


def test_sums_are_the_same_bytes_every_time(processes):
    assert _told(processes, jobs.same_bytes) == [True] * RANKS


def test_gradients_of_the_hook_are_those_of_plain_data_parallel_training(processes):
    told = _told(processes, jobs.trained)
    assert all(buckets > 1 for buckets, _, _ in told)
    assert max(apart for _, apart, _ in told) < 1e-13
    assert len({weights for _, _, weights in told}) == 1
    assert np.isfinite(np.frombuffer(told[0][2])).all()


def test_the_hook_does_not_wait_for_other_ranks(processes):
    assert _told(processes, jobs.hooked_before_others) == [3.5] * RANKS


def test_what_goes_wrong_in_the_hook_reaches_the_one_who_waits(processes):
    assert all("torch.int64 has no averages" in told for told in _told(processes, jobs.hooked_on_whole_numbers))


def test_processes_of_another_number_are_refused(processes):
    with pytest.raises(ProgramError, match="8 processes cannot be its 4 ranks: start 4"):
        run_locally(ring_all_reduce([range(4)]), "allreduce", processes=processes)
