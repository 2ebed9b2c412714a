"""The page of a replayed trace: what it says, what it draws, and that names stay text."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ropewalk.report.cluster import cluster_page, lead, policy_rows, waiting_rows
from ropewalk.report.cluster_charts import (
    MOST_POINTS,
    cumulative,
    means_chart,
    points_per_curve,
    policy_colours,
    sampled,
)
from ropewalk.report.cluster_map import MOST_BYTES, Rectangle, held, rectangles, window
from ropewalk.report.cluster_verdict import against_common, group_rows, headline
from ropewalk.report.cluster_words import duration, reason
from ropewalk.report.colours import DARK_OF_LIGHT
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.compared import of_one
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES, policies_named
from ropewalk.tenancy.question import ClusterQuestion, Conditions
from ropewalk.tenancy.record import JobRecord, Stretch
from ropewalk.tenancy.study import answer
from ropewalk.tenancy.timeline import Curves
from ropewalk.tenancy.work import Iteration, JobExchange

SMALL = plant("leaf-spine:4x4x4", gpus_per_server=2)
CHATTY = Iteration(0.5, (JobExchange("all-to-all", 5e9),))


def replayed(name="a", isolate=("vclos",), **more):
    jobs = [Job(f"{name}{number}", gpus, float(number), 20, CHATTY) for number, gpus in enumerate((8, 8, 16, 2, 1))]
    policies = policies_named(isolate, None, **({"compare": True} | more))
    return answer(ClusterQuestion(SMALL, jobs, policies, Conditions(), trace="tiny.csv"))


@pytest.fixture(scope="module")
def found():
    return replayed()


def test_every_way_is_in_the_table_the_bars_and_the_curves(found, read_page):
    page = read_page(cluster_page(of_one(found)))
    assert set(page.figure_keys) == {"means", "distribution", "over-time", "reasons"}
    running, waiting = page.figures("means")[0]["data"]
    assert [a + b for a, b in zip(running["x"], waiting["x"], strict=True)] == pytest.approx(
        [run.mean_jct_s for run in found.timelines]
    )
    for figure in page.figures("distribution"):
        assert [trace["name"] for trace in figure["data"]] == ["ecmp", "source", "vclos", "ocs-vclos", "ideal"]
        assert all(trace["y"][-1] == 1.0 for trace in figure["data"])
    for policy in found.policies:
        assert policy.about in page.text


def test_bars_are_means_over_seeds_as_the_table_beside_them(found):
    one = of_one(found)
    (seed,) = one.seeds
    late = {name: {**values, "mean_jwt_s": values["mean_jwt_s"] + 10} for name, values in seed.policies.items()}
    chart = means_chart(replace(one, seeds=(seed, replace(seed, policies=late))))
    waiting = chart.views[0].figure["data"][1]["x"]
    assert waiting == pytest.approx([run.mean_jwt_s + 5 for run in found.timelines])
    assert "2 seeds" in json.dumps(chart.views[0].figure["layout"])


def test_policies_under_which_no_job_can_start_have_dashes_and_no_times(read_page):
    """10 GPUs have no equal split over leafs of 4 in servers of 2: only shared links start them."""
    policies = policies_named(("vclos",), None, compare=True)
    asked = ClusterQuestion(SMALL, [Job("ten", 10, 0.0, 20, CHATTY)], policies, Conditions(), trace="tiny.csv")
    found = of_one(answer(asked))
    assert found.starts_none("vclos")
    assert not found.starts_none("ecmp")
    page = read_page(cluster_page(found))
    waiting = page.figures("means")[0]["data"][1]
    assert waiting["text"][[policy.name for policy in found.policies].index("vclos")] == "no job can start"
    assert {cell for row in policy_rows(found, 2.0) if row.policy.name == "vclos" for cell, _ in row.cells} == {"–"}
    assert "under vclos" not in lead(found).split(".")[0]
    alone = answer(replace(asked, policies=[POLICIES["vclos"], POLICIES["vclos-all-divisors"]]))
    assert headline(of_one(alone)) == "No job can ever start under vclos and vclos-all-divisors"


def test_means_over_fewer_jobs_are_not_what_others_are_compared_with():
    """Without the job of 10 GPUs, the one of 2 is done long before: no measure for policies that start both."""
    policies = policies_named(("vclos",), None, compare=True)
    jobs = [Job("ten", 10, 0.0, 200, CHATTY), Job("two", 2, 0.0, 20, CHATTY)]
    found = of_one(answer(ClusterQuestion(SMALL, jobs, policies, Conditions(), trace="tiny.csv")))
    names = [policy.name for policy in found.policies]
    texts = dict(zip(names, means_chart(found).views[0].figure["data"][1]["text"], strict=True))
    assert texts["vclos"].endswith(", not all jobs")
    assert texts["ideal"] == duration(found.spread("ideal", "mean_jct_s").mean), "the shortest that starts both"
    assert texts["ecmp"].endswith("×")


def test_gpus_and_links_of_the_map_never_belong_to_two_jobs(found):
    for policy, run in found.runs:
        drawn = list(rectangles(policy.plant(SMALL), run.jobs))
        taken = sum((one.high - one.low) * (one.end_s - one.start_s) for one in drawn if one.band < SMALL.leafs)
        assert taken == pytest.approx(sum(job.gpus * job.jrt_s for job in run.jobs))
        for number, one in enumerate(drawn):
            for other in drawn[:number]:
                apart = one.band != other.band or one.high <= other.low or other.high <= one.low
                assert apart or one.end_s <= other.start_s or other.end_s <= one.start_s


def test_a_job_that_a_failure_moved_is_drawn_in_both_places():
    jobs = [Job("a", 8, 0.0, 20, CHATTY)]
    failure = Failure(3.0, Drained(leafs=[0]))
    (run,) = answer(ClusterQuestion(SMALL, jobs, [POLICIES["vclos"]], Conditions(failures=(failure,)))).timelines
    drawn = list(rectangles(SMALL, run.jobs))
    early = {one.band for one in drawn if one.end_s == 3.0}
    late = {one.band for one in drawn if one.start_s == 3.0}
    assert 0 in early - late
    assert len(early) == len(late)
    taken = sum((one.high - one.low) * (one.end_s - one.start_s) for one in drawn if one.band < SMALL.leafs)
    assert taken == pytest.approx(8 * run.jobs[0].jrt_s)


def test_parallel_cables_have_places_of_their_own_in_the_map():
    doubled = plant("leaf-spine:2x2x4x2", gpus_per_server=2)

    def held(number):
        gpus, links = (2 * number, 4 + 2 * number), ((0, 1), (1, 1))
        got = Allocation(f"j{number}", gpus, "clos", (0, 1), (1,), links, (1, 1), (0, 1), cables=(number, number))
        return JobRecord(got.job, 2, 0.0, (Stretch(0.0, 10.0, got),), 10.0, {}, 1.0, 0.0)

    drawn = [one for one in rectangles(doubled, [held(0), held(1)]) if one.band >= doubled.leafs]
    assert sorted((one.band, one.low, one.high, one.job) for one in drawn) == [
        (3, 0, 1, 0), (3, 1, 2, 1), (3, 2, 3, 0), (3, 3, 4, 1),
    ]  # fmt: skip


def test_the_map_shows_spines_only_where_jobs_have_links_of_their_own(found, read_page):
    page = read_page(cluster_page(of_one(found)))
    views = {view["name"]: view for view in json.loads(page.scripts["map-data"])["views"]}
    assert len(views["ecmp"]["bands"]) == 4
    assert len(views["vclos"]["bands"]) == 8
    assert [name[:3] for name in views["ocs-vclos"]["bands"][4:]] == ["ocs"] * 4
    for view in views.values():
        assert len(view["jobs"]) == 5
        for _, _, _, *places in view["held"]:
            for at in range(0, len(places), 4):
                first, bands, _, high = places[at : at + 4]
                assert all(high <= size for size in view["sizes"][first : first + bands])


def test_the_map_has_every_rectangle_that_jobs_hold(found, read_page):
    page = read_page(cluster_page(of_one(found)))
    for (policy, run), view in zip(found.runs, json.loads(page.scripts["map-data"])["views"], strict=True):
        drawn = [
            (band, low, high, start, end, job)
            for start, end, job, *places in view["held"]
            for at in range(0, len(places), 4)
            for first, bands, low, high in [places[at : at + 4]]
            for band in range(first, first + bands)
        ]
        asked = [
            (one.band, one.low, one.high, round(one.start_s, 3), round(one.end_s, 3), one.job)
            for one in rectangles(policy.plant(SMALL), run.jobs)
        ]
        assert sorted(drawn) == sorted(asked)


def test_of_too_many_rectangles_the_beginning_is_drawn():
    many = held(Rectangle(0, 0, 1, float(at), at + 1.0, at) for at in range(10))
    about = [f"job {at}" for at in range(10)]
    row, said = len("[0.0,1.0,0,0,1,0,1],"), len('"job 0",0,')
    begin, end, kept = window(many, about, 3 * (row + said))
    assert (begin, end, len(kept)) == (0.0, 3.0, 3)
    assert window(many, about, 10_000) == (0.0, 10.0, many)
    assert window([], [], 0) == (0.0, 1.0, [])


def test_what_starts_at_once_is_drawn_whatever_room_there_is():
    together = held(Rectangle(at, 0, 1, 5.0, 7.0 + at, at) for at in range(4))
    assert window(together, ["a job"] * 4, 1) == (5.0, 10.0, together)


def test_a_long_trace_under_many_policies_has_a_page_of_less_than_a_megabyte(read_page):
    sizes = np.random.default_rng(7).choice([1, 2, 4, 8], 600).tolist()
    jobs = [Job(f"job-{number}", gpus, 8.0 * number, 20, CHATTY) for number, gpus in enumerate(sizes)]
    policies = policies_named(("vclos", "laas"), None, compare=True, placement=("packed", "random", "volcano"))
    study = answer(ClusterQuestion(SMALL, jobs, policies, Conditions(), trace="long.csv"))
    assert len(study.runs) > 8
    page = cluster_page(of_one(study))
    assert len(page.encode()) < 1_000_000
    read = read_page(page)
    assert 0.9 * MOST_BYTES < len(read.scripts["map-data"].encode()) < 1.1 * MOST_BYTES
    assert "A page has room for the beginning of this trace only: " in read.text
    most = points_per_curve(len(study.runs))
    for key in ("distribution", "over-time"):
        assert max(len(trace["x"]) for figure in read.figures(key) for trace in figure["data"]) == most


def test_the_headline_names_the_best_that_anybody_can_have_and_the_next(found):
    one = of_one(found)
    assert headline(one) == "Jobs take as long under source as under vclos, and no policy is faster"
    hashed = of_one(replayed(isolate=("vclos", "none"), compare=False))
    assert headline(hashed).startswith("Jobs complete soonest under vclos, ")
    assert headline(hashed).endswith(" sooner than under ecmp (one seed, so no confidence interval)")
    assert " sooner than under ecmp" in (against_common(one) or "")
    assert "jobs complete in" in headline(of_one(replayed(isolate=("none",), compare=False)))


def test_the_first_paragraph_names_the_means_that_matter_of_many_policies():
    many = ("vclos", "laas", "vclos-all-divisors", "ocs-vclos-all-divisors")
    one = of_one(replayed(isolate=many))
    first = lead(one).split(". ")[0]
    assert first.count(" under ") == 1 + 4 + 1
    assert "under ecmp" in first
    assert "under ideal" in first
    assert first.endswith("under 4 others")


def test_differences_that_seeds_do_not_tell_from_chance_say_so(found):
    one = of_one(found)
    (seed,) = one.seeds

    def with_ecmp(factors):
        seeds = []
        for factor in factors:
            ecmp = {**seed.policies["ecmp"], "mean_jct_s": factor * seed.policies["source"]["mean_jct_s"]}
            seeds.append(replace(seed, policies={**seed.policies, "ecmp": ecmp}))
        return against_common(replace(one, seeds=tuple(seeds)))

    assert "than under ecmp (within the spread)" in with_ecmp([1.001, 1.1])
    assert "(within the spread)" not in with_ecmp([1.10, 1.11])
    assert with_ecmp([1.1]).endswith(" sooner than under ecmp, as fast as on an ideal network.")
    assert with_ecmp([1.00001]).endswith(" complete as fast as under ecmp and on an ideal network.")


def test_jobs_that_waited_are_listed_with_their_reason(found):
    rows = waiting_rows(found, "vclos")
    assert rows[0].job.name == "a3"
    assert "behind the head of the queue" in rows[0].reasons
    assert all(row.job.jwt_s > 0 for row in rows)


def test_a_page_without_waiting_has_no_reasons(read_page):
    jobs = [Job("alone", 4, 0.0, 5, CHATTY)]
    quiet = answer(ClusterQuestion(SMALL, jobs, policies_named(["vclos"], None, compare=False), Conditions()))
    assert set(read_page(cluster_page(of_one(quiet))).figure_keys) == {"means", "distribution", "over-time"}


def test_the_same_study_gives_the_same_bytes_and_names_are_only_text():
    assert cluster_page(of_one(replayed(compare=False))) == cluster_page(of_one(replayed(compare=False)))
    evil = "<script>alert(1)</script>"
    assert evil not in cluster_page(of_one(replayed(evil, compare=False)))


def test_curves_keep_their_ends_and_means():
    times, part = cumulative(np.arange(5000.0), MOST_POINTS)
    assert len(times) == MOST_POINTS
    assert (times[0], times[-1], part[-1]) == (0.0, 4999.0, 1.0)
    steps = np.array([4, 0, 2, 0])
    curves = Curves(np.array([0.0, 10.0, 20.0, 40.0]), steps, steps, steps)
    assert sampled(curves, steps.astype(float), np.linspace(0.0, 40.0, 251)).mean() == pytest.approx((40 + 0 + 40) / 40)


def test_times_and_reasons_are_said_as_people_say_them():
    said = [duration(seconds).replace("\u00a0", " ") for seconds in (0.0, 12.4, 600.0, 9000.0, 1e6)]
    assert said == ["0 s", "12.4 s", "10 min", "2.5 h", "11.6 d"]
    assert reason("network-fragmentation") == "no common spines"


def test_groups_of_jobs_are_compared_by_name_where_a_policy_cannot_start_some():
    """10 GPUs have no equal split over leafs of 4 in servers of 2."""
    odd = [Job(f"j{number}", gpus, 0.0, 5, CHATTY) for number, gpus in enumerate((2, 10, 16))]
    study = answer(ClusterQuestion(SMALL, odd, [POLICIES["vclos"], POLICIES["ecmp"]], Conditions()))
    refused = {job.gpus for job in study.timeline("vclos").refused}
    assert refused == {10}
    names, rows = group_rows(of_one(study), "by_size", "scaling_factor")
    assert names == ["vclos", "ecmp"]
    assert [(name, jobs) for name, jobs, _ in rows] == [("2", 1), ("9-16", 2)]
    few = [job for job in odd if job.gpus != 16]
    study = answer(ClusterQuestion(SMALL, few, [POLICIES["vclos"], POLICIES["ecmp"]], Conditions()))
    _, rows = group_rows(of_one(study), "by_size", "scaling_factor")
    assert [(name, cells[0] == "–") for name, _, cells in rows] == [("2", False), ("9-16", True)]


def test_shards_say_what_was_patched_and_pages_have_scaling_factors(read_page):
    study = replayed(isolate=("topoopt",), compare=False)
    page = cluster_page(of_one(study))
    assert "Scaling factor by size" in page
    assert "fibres patched for 3 shards" in page
    assert "along cables that were patched for it" in page


def test_every_policy_has_a_colour_of_its_own_also_with_other_placements():
    table = POLICIES.colours()
    assert len({colour.light for colour in table.values()}) == len({colour.dark for colour in table.values()})
    assert len({colour.light for colour in table.values()}) == len(POLICIES)
    assert {colour.light for colour in table.values()} <= set(DARK_OF_LIGHT)
    study = replayed(isolate=("none", "vclos", "laas"), compare=True, placement=("packed", "random", "volcano"))
    chosen = policy_colours(study)
    assert "ecmp+random" in chosen
    assert len(set(chosen.values())) == len(chosen) == len(study.policies)
