"""Streamed all-reduces run for real: the bits of a ring sum whoever is late, an end with a reason if one is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

import overlap_jobs
import stream_jobs as jobs

from ropewalk.execute import LocalRanks
from ropewalk.execute.overlap import CommunicationOrder, OperationLaunch, Piece, Stream

pytestmark = pytest.mark.extras

RANKS = 8
PATIENCE_S = 600
"""Before processes of a busy machine are taken for lost."""


@pytest.fixture(scope="module")
def processes():
    with LocalRanks(RANKS, timeout_s=PATIENCE_S) as started:
        yield started


@pytest.fixture(scope="module")
def processes_of_two():
    with LocalRanks(2, timeout_s=PATIENCE_S) as started:
        yield started


@pytest.mark.parametrize(
    ("ranks", "links", "seed", "settings"),
    [
        (2, "sockets", 0, {}),
        (5, "sockets", 1, {}),
        (8, "sockets", 2, {}),
        (8, "sockets", 3, {"stream": Stream(mix=False)}),
        (3, "sockets", 4, {"stream": Stream(broadcast=False)}),
        (4, "sockets", 5, {"stream": Stream(gather_key=tuple(range(50, 44, -1))), "barrier": True}),
        (3, "sockets", 6, {"stream": Stream(mix=False, broadcast=False, window=1)}),
        (2, "group", 1, {}),
        (5, "group", 2, {"stream": Stream(mix=False, broadcast=False)}),
        (8, "group", 3, {}),
    ],
)
def test_fifty_steps_have_the_bits_of_a_ring_sum(processes, ranks, links, seed, settings):
    order = jobs.chunked(seed, **settings)
    told = processes.call(jobs.steps_with_the_bits_of_a_ring_sum, [(ranks, links, order, 50)] * RANKS)
    assert told == [50] * ranks + [None] * (RANKS - ranks)


def test_real_models_end_with_the_very_bits_of_ddp_on_two_ranks(processes_of_two):
    """Two numbers have one sum in any order."""
    elements = overlap_jobs.elements("attention")
    halves = [
        OperationLaunch(
            ((Piece(name, 0, size // 2),), (Piece(name, size // 2, size),)) if size > 1 else ((Piece(name, 0, size),),)
        )
        for name, size in elements.items()
    ]
    order = CommunicationOrder(tuple(halves), stream=Stream())
    expected = processes_of_two.call(overlap_jobs.trained_by_ddp, [("attention", "sgd", True, 3)] * 2)
    assert processes_of_two.call(overlap_jobs.trained_by_order, [("attention", "sgd", order, True, 3)] * 2) == expected


@pytest.mark.parametrize("links", jobs.LINKS)
def test_ranks_with_different_plans_refuse_to_begin(processes_of_two, links):
    told = processes_of_two.call(jobs.plans_that_differ, [(links,)] * 2)
    text = "ranks 0 and 1 have different plans: barrier is false at one and true at the other; give all ranks the same"
    assert all(one.startswith(text) for one in told)


@pytest.mark.parametrize("links", jobs.LINKS)
def test_a_rank_that_stands_still_ends_the_others_in_the_time_that_is_allowed(processes_of_two, links, tmp_path):
    told = processes_of_two.call(jobs.one_rank_stands_still, [(links, 1, str(tmp_path / "told"))] * 2)
    assert told[1] == "slept"
    assert "rank 0 waited 1 s for the average of fifth: check the other ranks" in told[0]


@pytest.mark.parametrize("links", jobs.LINKS)
def test_a_killed_rank_ends_all_others_with_a_reason(tmp_path, links):
    killed = 2
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "GLOO_SOCKET_IFNAME": "lo"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", f"import stream_jobs; stream_jobs.one_rank_is_killed{arguments}"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for arguments in ((rank, 4, links, killed, str(tmp_path / "meeting")) for rank in range(4))
    ]
    told = [process.communicate(timeout=PATIENCE_S)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, -9, 0]
    for rank in {*range(4)} - {killed}:
        reason = told[rank].strip()
        assert reason.startswith(f"rank {rank} lost rank ")  # and has not "waited 300 s"
        assert reason.endswith("restart all ranks")


def test_messages_in_one_fixed_order_have_the_bits_of_a_ring_sum_too(processes):
    """As on NCCL, which knows no tags."""
    order = jobs.in_turn(5, 4)
    told = processes.call(jobs.steps_with_the_bits_of_a_ring_sum, [(4, "in turn", order, 50)] * RANKS)
    assert told == [50] * 4 + [None] * (RANKS - 4)
