from __future__ import annotations

import json
import subprocess
import sys

import pytest

ROPEWALK = [sys.executable, "-c", "from ropewalk.cli import main; main()"]


def run(*arguments, cwd=None):
    return subprocess.run([*ROPEWALK, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False)


def test_help_answers_without_loading_numba():
    script = "import sys; from ropewalk.cli import app; sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    answer = run("--help")
    assert answer.returncode == 0
    for command in ("sync", "fabric", "simulate"):
        assert command in answer.stdout


def test_sync_prints_rows_as_json():
    answer = run("sync", "--logical", "ring,hips", "--physical", "bcube:3,2,torus", "--hosts", 9, "--json")
    assert answer.returncode == 0, answer.stderr
    rows = json.loads(answer.stdout)["rows"]
    assert {row["fabric"] for row in rows} == {"bcube:3,2", "torus:3x3"}
    wanted = {"logical", "physical", "hosts", "size_bytes", "level", "routing", "sync_time_s", "closed_form_s",
              "closed_form_edition", "max_link_share"}  # fmt: skip
    assert all(wanted <= set(row) for row in rows)


def test_sync_writes_the_same_page_twice(tmp_path):
    arguments = ("sync", "--logical", "ring", "--physical", "torus", "--hosts", 9, "--page")
    assert run(*arguments, tmp_path / "a.html").returncode == 0
    assert run(*arguments, tmp_path / "b.html").returncode == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("sync", "--physical", "fat-tree", "--hosts", "100"), "sizes near it are 64, 125, 128"),
        (("sync", "--size", "10parsecs"), "unknown unit"),
        (("sync", "--bandwidth", "100"), "has no unit"),
        (("sync", "--bandwidth", "-1Gbps"), "negative"),
        (("sync", "--hosts", "many"), "whole number"),
        (("sync", "--hosts", ""), "--hosts is empty"),
        (("sync", "--logical", "star"), "unknown logical topology 'star'"),
        (("sync", "--physical", "switch", "--hosts", "1"), "2"),
        (("fabric", "klein-bottle:3"), "klein-bottle"),
        (("fabric", "torus"), "hosts"),
        (("fabric", "missing.yaml"), "missing.yaml"),
        (("simulate", "missing.yaml", "--fabric", "switch:4"), "missing.yaml"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_two(arguments, part):
    answer = run(*arguments)
    assert answer.returncode == 2
    assert part in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""


def test_a_broken_fabric_file_is_reported_with_all_findings(tmp_path):
    path = tmp_path / "rack.yaml"
    path.write_text(
        "hosts: [h0, h1, h1, h3]\nswitches: [s]\nlinks:\n"
        "- [h0, s, 100Gbps]\n- [h1, nowhere, 100Gbps]\n- [h3, s, -5Gbps]\n"
    )
    answer = run("fabric", path)
    assert answer.returncode == 2
    for part in ("h1", "nowhere", "negative", "links[1]", "links[2]"):
        assert part in answer.stderr
    path.write_text("hosts: [h0, h1, h2]\nswitches: [s]\nlinks:\n- [h0, s, 100Gbps]\n- [h1, s, 100Gbps]\n")
    answer = run("fabric", path)
    assert answer.returncode == 2
    assert "h2" in answer.stderr


def test_fabric_saves_what_it_reads_back(tmp_path):
    saved = tmp_path / "torus.yaml"
    assert run("fabric", "torus:3x3", "--bandwidth", "40Gbps", "--save", saved).returncode == 0
    built, read = run("fabric", "torus:3x3", "--bandwidth", "40Gbps", "--json"), run("fabric", saved, "--json")
    first, second = json.loads(built.stdout), json.loads(read.stdout)
    assert {key: first[key] for key in ("hosts", "links", "diameter")} == {
        key: second[key] for key in ("hosts", "links", "diameter")
    }


def test_simulate_runs_the_example(tmp_path):
    example = "examples/two-layer-step.yaml"
    answer = run("simulate", example, "--fabric", "switch:4", "--trace", tmp_path / "t.json", "--json")
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert result["makespan_s"] > 0
    assert result["critical_path"][-1]["end_s"] == pytest.approx(result["makespan_s"])
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
