"""Streamed fused all-reduces are programs like all others: real processes run them and agree with PyTorch."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

from streamed_programs import gathered_in_turn, rank_major, tensor_after_tensor

from ropewalk.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from ropewalk.execute import run_locally

pytestmark = pytest.mark.extras

RING = [range(3)]


@pytest.mark.parametrize(
    "program",
    [
        rank_major(ring_all_reduce(RING), [3, 1, 2]),
        tensor_after_tensor(ring_all_reduce(RING), [3, 1, 2]),
        gathered_in_turn(ring_reduce_scatter(RING), ring_all_gather(RING), [3, 1, 2]),
    ],
    ids=lambda program: program.name,
)
def test_every_layout_of_a_fused_sum_gives_the_sum(program):
    report = run_locally(program, "allreduce", sizes=[7200], dtypes=["int32"], repeats=1, seed=1)
    assert report.agrees
