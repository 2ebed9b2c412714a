"""One iteration of a job: what may be said of it, and what may not."""

from __future__ import annotations

import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy.work import Iteration, JobExchange


def test_impossible_work_is_named() -> None:
    with pytest.raises(ClusterError) as caught:
        Iteration(-1.0, (JobExchange("ring", -5.0, overlap_s=3.0, group=1, after_s=-1.0),))
    for part in (
        "computes for -1.0 s",
        "moves -5.0 bytes",
        "groups of 1",
        "overlap and follow 2 s",
        "begins -1.0 s after",
    ):
        assert part in str(caught.value)
    with pytest.raises(ClusterError, match="neither computes nor sends"):
        Iteration(0.0)
    with pytest.raises(ClusterError, match="list equal groups of 2 or more"):
        Iteration(1.0, (JobExchange("ring", 1.0, groups=((0, 1), (2, 3, 4))),))


def test_work_scales_its_volume_and_drops_its_overlap() -> None:
    work = Iteration(1.0, (JobExchange("ring", 10.0, overlap_s=0.5),))
    assert work.scaled(1.5).exchanges[0].size_bytes == 15.0
    assert work.without_overlap().exchanges[0].overlap_s == 0.0


def test_a_gpu_computes_all_the_time_unless_its_pipeline_has_bubbles() -> None:
    assert Iteration(1.0).arithmetic_s == 1.0
    assert Iteration(1.0, busy_s=0.7).arithmetic_s == 0.7
