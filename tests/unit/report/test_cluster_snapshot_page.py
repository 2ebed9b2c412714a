"""The page of a snapshot: what it says of jobs that meet, that do not, and that pause each other."""

import pytest
from snapshot_worlds import moment, random_jobs

from ropewalk.report.cluster_snapshot import headline, lead, pair_rows, remarks, snapshot_page
from ropewalk.report.cluster_snapshot_charts import by_slowdown, course_chart, places_chart, sending, slowdown_chart
from ropewalk.sim.level import LevelUse, PacketOptions
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.snapshot import SnapshotQuestion, answer
from ropewalk.tenancy.work import Iteration, JobExchange

EVIL = "<script>alert(1)</script>"
SHIFTED = plant("leaf-spine:3x4x4", gpus_per_server=2)


@pytest.fixture(scope="module")
def shared():
    return answer(SnapshotQuestion(moment(random_jobs(3), "ecmp"), iterations=2))


@pytest.fixture(scope="module")
def packets():
    jobs = [Job(name, 6, 0.0, 1e9, Iteration(1e-6, (JobExchange("all-to-all", 4e6),))) for name in (EVIL, "b")]
    use = LevelUse("packet", "rdma-pfc", PacketOptions(buffer_bytes=1_000_000))
    return answer(SnapshotQuestion(moment(jobs, "ecmp", 1.0, SHIFTED), use, iterations=1, scale=0.5))


def test_the_headline_names_the_job_that_is_slowed_down_most(shared):
    slowest = shared.jobs[by_slowdown(shared)[0]]
    assert headline(shared).startswith(f"{slowest.name} takes 1.")
    assert "4 jobs on 48 of 48 GPUs of leaf-spine:6x4x8" in lead(shared).replace("\u00a0", " ")


def test_nobody_and_one_alone_have_headlines_of_their_own():
    isolated = answer(SnapshotQuestion(moment(random_jobs(3), "vclos"), iterations=1))
    assert headline(isolated) == "No job slows another one down under vclos"
    assert "–" in snapshot_page(isolated)
    alone = answer(SnapshotQuestion(moment(random_jobs(3, count=1), "ecmp")))
    assert headline(alone).startswith("j0 runs alone: ")
    assert pair_rows(alone) == []


def test_bars_are_what_others_add_and_diamonds_what_the_replay_assumes(shared):
    parts, seconds = (view.figure["data"] for view in slowdown_chart(shared).views)
    jobs = [shared.jobs[job] for job in by_slowdown(shared)]
    assert parts[0]["x"] == pytest.approx([max(job.slowdown - 1, 0.0) for job in jobs])
    assert parts[1]["x"] == pytest.approx([job.assumed_slowdown - 1 for job in jobs])
    assert [a + b for a, b in zip(seconds[0]["x"], seconds[1]["x"], strict=True)] == pytest.approx(
        [max(job.iteration_s, job.alone_s) for job in jobs]
    )


def test_the_course_shows_when_jobs_send(shared):
    spans = sending(shared, 0)
    assert all(a < b for a, b in spans)
    assert len(spans) == len(shared.jobs[0].ends_s) - 1
    assert len(course_chart(shared).views[0].figure["data"]) == 3 * len(shared.jobs)


def test_every_gpu_of_every_job_has_its_place_in_the_drawing(shared):
    bars = places_chart(shared).views[0].figure["data"]
    assert sum(bar["x"][0] for bar in bars) == sum(job.gpus for job in shared.jobs)


def test_packets_say_who_paused_whom_and_names_are_only_text(packets):
    (row,) = pair_rows(packets)
    assert row.links > 0
    assert row.first_paused > 0
    assert row.second_paused > 0
    page = snapshot_page(packets, ["a warning about the names"], ["a note"])
    assert EVIL not in page
    assert "<strong>Warning:</strong> a warning about the names." in page
    assert "Job paused by other" in page
    assert any("Scaled-down exchanges" in one for one in remarks(packets))


def test_all_to_alls_that_are_thinned_out_are_named():
    wide = plant("leaf-spine:5x8x8", gpus_per_server=2)
    jobs = [Job("wide", 40, 0.0, 100, Iteration(0.1, (JobExchange("all-to-all", 64e6),)))]
    (said,) = remarks(answer(SnapshotQuestion(moment(jobs, "vclos", 1.0, wide), iterations=1)))
    assert said.startswith("Of the all-to-all of wide, 32 rounds represent all rounds")
