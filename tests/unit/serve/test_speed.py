"""Jobs report how fast they train, and are compared with what their plan promised."""

from __future__ import annotations

import pytest
from serve_cluster import Cluster

from ropewalk.errors import ClusterError
from ropewalk.serve import operation as asked
from ropewalk.serve.encoding import decode, encode
from ropewalk.serve.job import ServedJob
from ropewalk.serve.speed import KEPT


def report(cluster: Cluster, job: str, step: int, step_s: float, steps: int = 10):
    cluster.now += 1.0
    return cluster.do(asked.Progress(job, step, step_s * steps, steps))


def test_measured_is_compared_with_promised() -> None:
    cluster = Cluster()
    job = cluster.submit(8, promised_step_s=0.4)
    assert cluster.state.job(job).measured == ()
    speed = report(cluster, job, 10, 0.42).answer["speed"]
    assert (speed["step"], speed["recent_step_s"], speed["slowdown"]) == (10, pytest.approx(0.42), pytest.approx(1.05))
    assert not speed["slow"]


def test_the_recent_speed_weighs_steps_and_forgets_old_reports() -> None:
    cluster = Cluster()
    job = cluster.submit(8)
    report(cluster, job, 10, 9.0)
    for number in range(5):
        report(cluster, job, 20 + number, 1.0 if number else 4.0, steps=2 if number else 4)
    speed = cluster.do(asked.Progress(job, 10, 90.0, 10)).answer["speed"]
    assert speed["recent_step_s"] == pytest.approx((16 + 4 * 2) / (4 + 4 * 2))
    assert speed["slowdown"] is None


def test_the_same_report_again_changes_nothing() -> None:
    cluster = Cluster()
    job = cluster.submit(8)
    once = report(cluster, job, 10, 0.5)
    again = cluster.do(asked.Progress(job, 10, 5.0, 10))
    assert again.answer == once.answer
    assert not again.changed


def test_a_job_may_not_report_all_the_time() -> None:
    cluster = Cluster()
    job = cluster.submit(8)
    report(cluster, job, 10, 0.5)
    refusal = cluster.refused(asked.Progress(job, 11, 0.5))
    assert (refusal.code, refusal.details) == ("too-many-requests", {"retry_after_s": 1})
    assert report(cluster, job, 11, 0.5).answer["speed"]["reports"] == 2


def test_a_report_is_no_new_version_of_the_job() -> None:
    cluster = Cluster()
    job = cluster.submit(8)
    before = cluster.state.job(job).version
    assert report(cluster, job, 10, 0.5).answer["version"] == before
    assert cluster.state.job(job).version == before


def test_only_the_latest_reports_are_kept() -> None:
    cluster = Cluster()
    job = cluster.submit(8)
    for step in range(KEPT + 7):
        report(cluster, job, step + 10, 0.5)
    kept = cluster.state.job(job)
    assert (len(kept.measured), kept.reports, kept.measured[0].step) == (KEPT, KEPT + 7, 17)


def test_only_running_jobs_report() -> None:
    cluster = Cluster()
    running, waiting = cluster.submit(32), cluster.submit(32)
    assert cluster.refused(asked.Progress(waiting, 1, 1.0)).code == "wrong-state"
    cluster.do(asked.End(running))
    assert cluster.refused(asked.Progress(running, 1, 1.0)).code == "wrong-state"


def test_a_job_is_slow_after_three_reports_and_fine_again_below_a_lower_mark() -> None:
    cluster = Cluster()
    job = cluster.submit(8, promised_step_s=1.0)
    told = [event.kind for step in range(4) for event in report(cluster, job, step + 10, 1.2).events]
    assert told == ["job-slow"]
    told = [event.kind for step in range(5) for event in report(cluster, job, step + 20, 1.07).events]
    assert told == [], "between the marks it stays what it was"
    told = [event.kind for step in range(5) for event in report(cluster, job, step + 30, 1.0).events]
    assert told == ["job-as-promised"]


def test_another_size_has_no_promise_and_another_place_no_measured_speed() -> None:
    cluster = Cluster()
    job = cluster.submit(8, promised_step_s=1.0)
    report(cluster, job, 10, 1.0)
    resized = cluster.do(asked.Resize(job, 16)).answer["speed"]
    assert (resized["promised_step_s"], resized["recent_step_s"], resized["step"]) == (None, None, 10)


def test_reports_survive_the_store() -> None:
    cluster = Cluster()
    job = cluster.submit(8, promised_step_s=1.0)
    report(cluster, job, 10, 1.0)
    kept = cluster.state.job(job)
    assert ServedJob.from_document(decode(encode(kept.as_document()))) == kept


@pytest.mark.parametrize("damaged", [[[1.0, 2, 0, 1.0, 1]], [[1.0, 2, 1, -1.0, 1]], [[1.0, "2", 1, 1.0, 1]]])
def test_damaged_reports_are_refused(damaged) -> None:
    with pytest.raises(ValueError):
        ServedJob.from_document({"number": 1, "name": "a", "gpus": 1, "submitted_at": 0.0, "measured": damaged})


@pytest.mark.parametrize(
    "said", [(0, 1.0, 1), (5, 0.0, 1), (5, float("nan"), 1), (5, 1.0, 6), (5, 1.0, 0), (2**54, 1, 1)]
)
def test_reports_that_no_job_could_make_are_refused(said) -> None:
    with pytest.raises(ClusterError):
        asked.Progress("j1", *said)
