"""A choice that is added to its table is in help texts, lists, checks and charts: nothing else has to change."""

import json

import pytest
from new_choices import NEW, one_more_of_each

from ropewalk import sync
from ropewalk.errors import InputError
from ropewalk.pipeline.terms import Terms
from ropewalk.pipeline.timetable_study import communication_study
from ropewalk.report import sync_page
from ropewalk.report.cluster import cluster_page
from ropewalk.report.pipeline_charts import communication_chart
from ropewalk.strategy import Strategy
from ropewalk.sync import SyncQuestion
from ropewalk.tenancy.compared import of_one
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import policies_named
from ropewalk.tenancy.question import ClusterQuestion, Conditions
from ropewalk.tenancy.study import answer as replayed
from ropewalk.tenancy.work import Iteration, JobExchange

SMALL = plant("leaf-spine:4x4x4", gpus_per_server=2)
JOBS = [Job("a", 8, 0.0, 20, Iteration(0.5, (JobExchange("all-to-all", 5e9),)))]
TINY = SyncQuestion(("gossip",), ("wheel",), (8,), (1_000_000,), routing=("zigzag",))


@pytest.fixture(autouse=True)
def new_choices():
    with one_more_of_each():
        yield


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("routers", ("sync",)),
        ("routers", ("simulate",)),
        ("transports", ("sync",)),
        ("transports", ("simulate",)),
        ("policies", ("cluster", "replay")),
        ("policies", ("cluster", "allocate")),
        ("fabrics", ("fabric",)),
        ("schedules", ("pipeline",)),
        ("schedules", ("simulate",)),
        ("collectives", ("sync",)),
    ],
)
def test_help_names_a_new_choice(kind, command, ropewalk, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    answer = ropewalk(*command, "--help")
    assert NEW[kind][1].name in answer.stdout


@pytest.mark.parametrize("kind", NEW)
def test_a_new_choice_is_listed_and_found_by_its_words(kind, ropewalk):
    record = NEW[kind][1]
    (row,) = ropewalk("list", kind, record.about, "--json").json[kind]
    assert (row["name"], row["about"]) == (record.name, record.about)


@pytest.mark.parametrize("kind", NEW)
def test_a_new_choice_has_a_colour_that_no_table_has_to_name(kind):
    choices, record = NEW[kind]
    assert choices.colours()[record.name] is not None


def test_a_new_fabric_collective_and_router_are_accepted_by_name_and_drawn():
    found = sync.answer(TINY)
    assert {row.level for row in found.rows} == {"closed", "flow"}
    page = sync_page(found)
    assert "gossip" in page
    assert "ring:8" in page  # what the family makes


def test_a_new_transport_carries_packets(ropewalk, tmp_path):
    page = tmp_path / "page.html"
    asked = ("--logical", "ring", "--physical", "switch:4", "--size", "10kB", "--level", "packet")
    answer = ropewalk("sync", *asked, "--transport", "pigeons", "--json", "--page", page)
    assert answer.code == 0, answer.stderr
    assert "pigeons" in {row.get("transport") for row in json.loads(answer.stdout)["rows"]}
    assert NEW["transports"][1].colour.light in page.read_text()


def test_a_new_policy_is_replayed_and_drawn():
    found = replayed(ClusterQuestion(SMALL, JOBS, policies_named(["lottery"], None, compare=True), Conditions()))
    assert found.timeline("lottery").jobs
    assert "who draws the longest straw" in cluster_page(of_one(found))


def test_a_new_schedule_orders_a_step_is_planned_with_and_is_drawn():
    assert Strategy(pipeline=2, micro_batches=4, schedule="polka").timetable.devices == 2
    Terms(8, 1, schedules=("polka",))
    chart = communication_chart(communication_study(2, 4, ratios=(0.0,), names=("polka",)), 2, 4)
    assert "polka" in {trace["name"] for trace in chart.views[0].figure["data"]}


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (SyncQuestion(("ring",), ("switch:4",), routing=("zigzag",)), "router zigzag needs"),
        (SyncQuestion(("ring",), ("wheel",), (16,)), "wheel with 16 hosts does not exist"),
        (SyncQuestion(("gossip",), ("ring:16",)), "gossip runs on at most 8 ranks"),
    ],
)
def test_a_new_choice_is_refused_where_it_does_not_apply(question, message):
    with pytest.raises(InputError, match=message):
        sync.answer(question)


def test_a_new_policy_is_refused_where_it_does_not_apply():
    failed = Conditions(failures=(Failure(3.0, Drained(links=[(0, 0)])),))
    with pytest.raises(InputError, match="policy lottery has no leaf-spine links that could fail"):
        replayed(ClusterQuestion(SMALL, JOBS, policies_named(["lottery"], None, compare=False), failed))
