from __future__ import annotations

import pytest

from ropewalk.cli.ui import desk_of
from ropewalk.errors import InputError
from ropewalk.ui.desk import ASKABLE
from ropewalk.ui.model_list import options_of_planner


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    return desk_of(tmp_path_factory.mktemp("answers"), 1, "60s", "4GB")


def test_every_study_has_a_form_with_all_its_options(desk):
    assert tuple(desk.forms) == ASKABLE
    plan = {one.name: one for one in desk.form("plan").fields}
    assert plan["batch"].kind == "number"
    assert plan["tp_overlap"].kind == "switch"
    assert "page" not in plan
    assert "patch" not in plan  # a file to write
    assert "h200" in plan["device"].about  # names of tables are filled in
    assert {one.kind for one in desk.form("cluster replay").fields if one.name == "jobs"} == {"file"}


def test_what_a_command_writes_is_not_asked_for(desk):
    names = {command: {one.name for one in desk.form(command).fields} for command in ("simulate", "cost", "collective")}
    assert "trace" not in names["simulate"]
    assert "workload" not in names["cost"]
    assert "export" not in names["collective"]


def test_a_form_shows_the_example_of_the_help_without_what_it_cannot_take(desk):
    form = desk.form("simulate")
    assert form.example == {"what": "llama-7b", "gpus": "16", "dp": "2", "tp": "8"}
    assert form.example_line == "ropewalk simulate --gpus 16 --dp 2 --tp 8 llama-7b"
    assert desk.form("collective").example_line == "ropewalk collective allreduce dgx-a100:2"
    assert desk.form("cluster replay").example_line == ""  # its jobs are a file


def test_a_filled_form_is_the_command_line(desk):
    asked = desk.asked(
        "plan", {"model": "gpt2", "batch": 64, "rails": False, "tp_overlap": True, "explain": ["tp 4", "pp 2"]}
    )
    assert asked.command_line == (
        "ropewalk plan --batch 64 --tp-overlap --no-rails --explain 'tp 4' --explain 'pp 2' gpt2"
    )


def test_an_argument_stays_one_even_if_it_looks_like_an_option(desk):
    assert desk.asked("plan", {"model": "--page"}).arguments == ("--", "--page")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"page": "x.html"}, "no option 'page'"),
        ({"model": "gpt2", "batch": [1, 2]}, "takes one value"),
        ({"model": {"a": 1}}, "not text or a number"),
        ({"model": "gpt2", "rails": "yes"}, "is a switch"),
    ],
)
def test_what_a_form_does_not_have_is_refused(desk, values, said):
    with pytest.raises(InputError, match=said):
        desk.asked("plan", values)


def test_a_form_that_does_not_exist_is_refused_with_those_that_do(desk):
    with pytest.raises(InputError, match="no form for 'serve': use one of plan, simulate"):
        desk.form("serve")


def test_a_form_calls_its_arguments_as_the_usage_of_the_command_does(desk):
    labels = [one.label for one in desk.form("collective").fields]
    assert labels[:2] == ["kind", "fabric"]
    assert "--group" in labels


def test_a_default_is_shown_as_somebody_would_type_it(desk):
    defaults = {one.name: one.default for one in desk.form("sync").fields}
    assert defaults["most_events"] == "1000000000"
    assert defaults["bandwidth"] == "40Gbps"


def test_forms_offer_no_code_and_say_what_an_empty_choice_stands_for(desk):
    for name in ASKABLE:
        assert not any("file.py:Class" in one.about for one in desk.form(name).fields)
    sync = {one.name: one for one in desk.form("sync").fields}
    assert (sync["symmetry"].usual, sync["nearest"].usual) == ("default (on)", "default (off)")
    plan = {one.name: one for one in desk.form("plan").fields}
    assert plan["rails"].usual == "default"  # as the cluster has them


def test_presets_say_how_many_gpus_a_server_has():
    gpus = {one["name"]: one["gpus"] for one in options_of_planner()["presets"]}
    assert (gpus["dgx-h100"], gpus["gb200-nvl72"]) == (8, 72)
