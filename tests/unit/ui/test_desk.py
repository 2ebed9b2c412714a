"""What the desk has commands write: a page where there is one, a plan where the answer is one, and every export."""

from __future__ import annotations

import pytest

from ropewalk.cli.ui import desk_of
from ropewalk.export.of_plan import EXPORTS
from ropewalk.ui.shelf import PAGE, PLAN


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A desk whose questions are noted and not worked on."""
    made = desk_of(tmp_path / "answers", 1, "60s", "4GB")
    made.noted = []
    monkeypatch.setattr(made.pool, "ask", lambda asked, user, extra=(): made.noted.append((asked, extra)))
    return made


def written(desk, name, values):
    desk.ask(desk.asked(name, values), "me")
    return desk.noted[-1][1]


def test_a_plan_is_kept_for_one_network_and_for_several(desk):
    everything = ("--json", "--page", PAGE, "--plan", PLAN)
    assert written(desk, "plan", {"model": "gpt2"}) == everything
    assert written(desk, "plan", {"model": "gpt2", "network": "own,rail-only"}) == everything
    assert written(desk, "cost", {"model": "gpt2"}) == ("--json",)


def test_a_collective_is_part_of_a_plan_only_for_one_of_its_groups(desk):
    bare = ("--json", "--page", PAGE)
    assert written(desk, "collective", {"kind": "allreduce", "named": "torus:4x4"}) == bare
    assert written(desk, "collective", {"kind": "allreduce", "named": "4x8", "group": "0,1,2"}) == bare
    of_group = written(desk, "collective", {"kind": "allreduce", "named": "plan.json", "group": "data:1"})
    assert of_group == (*bare, "--plan", PLAN)


@pytest.mark.parametrize("to", EXPORTS)
def test_a_plan_can_be_asked_for_in_every_format(desk, tmp_path, to):
    asked = desk.asked("plan", {"model": "gpt2"})
    (tmp_path / PLAN).write_text("{}")
    desk.shelf.keep(asked, "{}", tmp_path, 1.0)
    desk.export(asked.key, to, "me")
    export, extra = desk.noted[-1]
    assert export.command_line == f"ropewalk export {PLAN} --to {to}"
    assert extra[0] == "--output"
