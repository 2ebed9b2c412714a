"""Measured communication patterns: what is read from them, and how they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy.of_trace import jobs_of
from ropewalk.tenancy.pattern_file import is_pattern, read_pattern
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.question import ClusterQuestion
from ropewalk.tenancy.study import answer
from ropewalk.tenancy.traces import TraceJob

WHERE = plant("leaf-spine:2x8x8", gpus_per_server=4)
LISTED = """
format: ropewalk pattern 1
gpus: 16
compute: 180ms
exchanges:
  - {collective: hierarchical-ring, size: 1.3GB, overlap: 90ms}
  - {collective: all-to-all, size: 64MB, group: 8, after: 20ms}
"""
PROFILE = """
format: ropewalk pattern 1
period: 260ms
profile:
  - [0ms, 0Gbps]
  - [120ms, 40Gbps]
  - [200ms, 0Gbps]
  - [220ms, 20Gbps]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "seen.yaml"
    path.write_text(text)
    return path


def job(path: Path, **more: object) -> TraceJob:
    return TraceJob("a", **({"gpus": 16, "arrival_s": 0.0, "model": path.name, "iterations": 10} | more))  # type: ignore[arg-type]


def test_exchanges_are_taken_as_they_were_seen(tmp_path: Path) -> None:
    path = written(tmp_path, LISTED)
    (found,) = jobs_of([job(path)], WHERE, folder=tmp_path)
    assert is_pattern(path)
    assert found.work.compute_s == pytest.approx(0.18)
    assert [(one.size_bytes, one.overlap_s, one.after_s) for one in found.work.exchanges] == [
        (1.3e9, 0.09, 0.0),
        (6.4e7, 0.0, 0.02),
    ]
    assert found.iterations == 10


def test_the_rate_of_a_nic_becomes_exchanges_that_move_as_many_bytes(tmp_path: Path) -> None:
    """40 Gbps for 80 ms are 400 MB over every NIC, which 100 Gbps carry in 32 ms; an iteration stays 260 ms long."""
    (found,) = jobs_of([job(written(tmp_path, PROFILE))], WHERE, folder=tmp_path)
    (run,) = answer(ClusterQuestion(WHERE, [found], [POLICIES["ideal"]])).timelines
    assert run.jobs[0].jrt_s == pytest.approx(2.6)
    assert [one.after_s for one in found.work.exchanges] == pytest.approx([0.12, 0.02])
    first, second = (one.size_bytes for one in found.work.exchanges)
    assert first == pytest.approx(4 * second)
    assert found.work.compute_s == pytest.approx(0.26 - 0.032 - 0.008)


def test_a_pattern_of_other_gpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="seen on 16 GPUs, the job has 8: measure it on 8"):
        jobs_of([job(written(tmp_path, LISTED), gpus=8)], WHERE, folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("compute: 1s", "does not begin with"),
        ("format: ropewalk pattern 1\ncompute: soon", "compute: .*soon"),
        ("format: ropewalk pattern 1\ncompute: 1s\nspeed: 4", "speed: unknown entry"),
        ("format: ropewalk pattern 1\ncompute: 1s\nexchanges: 3", "must be a list"),
        ("format: ropewalk pattern 1\ncompute: 1s\nexchanges: [{collective: gossip, size: 1GB}]", "no collective 'gos"),
        ("format: ropewalk pattern 1\ncompute: 1s\nexchanges: [{collective: ring}]", "size is missing"),
        ("format: ropewalk pattern 1\ncompute: 1s\nexchanges: [{size: 1GB, overlap: 3s}]", "give less overlap"),
        ("format: ropewalk pattern 1\ncompute: 1s\nexchanges: [{size: 1GB, group: -2}]", "group is -2"),
        ("format: ropewalk pattern 1\nperiod: 1s\nprofile: []", "not a list of"),
        ("format: ropewalk pattern 1\nperiod: 1s\nprofile: [[1s, 1Gbps], [0s, 2Gbps]]", "must begin at 0s"),
    ],
)
def test_patterns_that_cannot_be_meant_are_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ClusterError, match=says):
        read_pattern(written(tmp_path, text))


def test_a_rate_above_the_speed_of_the_nics_is_refused(tmp_path: Path) -> None:
    text = "format: ropewalk pattern 1\nperiod: 100ms\nprofile: [[0s, 900Gbps]]"
    with pytest.raises(ClusterError, match="--bandwidth"):
        jobs_of([job(written(tmp_path, text))], WHERE, folder=tmp_path)
