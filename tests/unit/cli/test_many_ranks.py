"""Steps of very many GPUs are simulated by one rank of each class, unless a file asks for all of them."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from ropewalk.cli import app, run_step

STEP = ["simulate", "gpt2:layers=2", "--gpus", "8", "--pp", "2", "--batch", "16", "--seq", "64", "--json"]


def numbers(*more: str) -> dict[str, object]:
    result = CliRunner().invoke(app, [*STEP, *more])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_one_of_each_class_says_what_all_ranks_say(monkeypatch):
    whole = numbers()
    monkeypatch.setattr(run_step, "ALL_RANKS", 4)
    quick = numbers()
    assert abs(quick["step_time_s"] / whole["step_time_s"] - 1) < 1e-9
    assert quick.keys() == whole.keys()


def test_a_file_of_all_tasks_has_all_ranks(monkeypatch, tmp_path):
    monkeypatch.setattr(run_step, "ALL_RANKS", 4)
    numbers("--trace", str(tmp_path / "step.json"))
    assert json.loads((tmp_path / "step.json").read_text())["otherData"]["ranks"] == 8
