from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_behind_standard_output_is_a_message():
    command = [*ROPEWALK, "cost", "alexnet", "--json"]
    with open("/dev/full", "w") as full:
        answer = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.startswith("ropewalk: cannot write the answer: No space left on device")
    assert "Traceback" not in answer.stderr


def test_sync_prints_rows_as_json():
    answer = run("sync", "--logical", "ring,hips", "--physical", "bcube:3,2,torus", "--hosts", 9, "--json")
    assert answer.returncode == 0, answer.stderr
    rows = json.loads(answer.stdout)["rows"]
    assert {row["fabric"] for row in rows} == {"bcube:3,2", "torus:3x3"}
    wanted = {"logical", "physical", "hosts", "size_bytes", "level", "routing", "sync_time_s", "closed_form_s",
              "closed_form_edition", "max_link_share"}  # fmt: skip
    assert all(wanted <= set(row) for row in rows)


def test_sync_over_k_has_a_row_per_k_and_k_in_its_json():
    asked = ("sync", "--logical", "hips,ring", "--physical", "bcube,switch", "--hosts", 16, "--level", "closed")
    words = [line.split() for line in run(*asked, "--axes", "all").stdout.splitlines()]
    table = words[words.index(["physical", "k", "n", "hips", "ring"]) + 2 :]
    assert [row[:3] for row in table if row][:4] == [
        ["bcube", "1", "16"], ["2", "4", *table[1][2:3]], ["4", "2", *table[2][2:3]], ["switch", "–", "–"],
    ]  # fmt: skip
    rows = json.loads(run(*asked, "--axes", "2,4", "--json").stdout)["rows"]
    found = {row["fabric"]: row["axes"] for row in rows}
    assert found == {"bcube:4,2": 2, "bcube:2,4": 4, "switch:16": None}


def test_sync_says_where_the_hosts_of_fabrics_differ_in_bandwidth():
    asked = ("sync", "--logical", "ring", "--hosts", 16, "--level", "closed", "--physical")
    told = run(*asked, "switch,torus").stdout
    assert "bandwidth per host differs: torus:4x4 160 Gbps, switch:16 40 Gbps" in told
    assert "bandwidth per host" not in run(*asked, "switch,leaf-spine").stdout


def test_sync_writes_the_same_page_twice(tmp_path):
    arguments = ("sync", "--logical", "ring", "--physical", "torus", "--hosts", 9, "--page")
    assert run(*arguments, tmp_path / "a.html").returncode == 0
    assert run(*arguments, tmp_path / "b.html").returncode == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("sync", "--physical", "fat-tree", "--hosts", "100"), "the nearest sizes are 64, 125, 128"),
        (("sync", "--size", "10parsecs"), "unknown unit"),
        (("sync", "--bandwidth", "100"), "has no unit"),
        (("sync", "--bandwidth", "-1Gbps"), "negative"),
        (("sync", "--hosts", "many"), "whole number"),
        (("sync", "--hosts", ""), "--hosts is empty"),
        (("sync", "--physical", "torus:4x4,ring:8", "--hosts", "16"), "--hosts would have no effect"),
        (("sync", "--logical", "star"), "there is no collective 'star'"),
        (("sync", "--physical", "switch", "--hosts", "1"), "2"),
        (("sync", "--size", "0B"), "is out of range"),
        (("sync", "--latency", "2h"), "is out of range"),
        (("sync", "--bandwidth", "40bps"), "slower than 1 Mbps"),
        (
            ("sync", "--routing", "dmodk"),
            "router dmodk needs a tree of switches",
        ),
        (("sync", "--physical", "torus:1000x1000"), "--level closed"),
        (("sync", "--page", "/proc/none/x.html"), "cannot write"),
        (("sync", "--page", "."), "it is a folder"),
        (("fabric", "switch:4", "--hosts", "8"), "has its own size"),
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


def rack(folder, name="rack"):
    path = folder / "rack.yaml"
    path.write_text(
        f"name: '{name}'\nhosts: [h0, h1, h2]\nswitches: [s]\nlinks:\n"
        "- [h0, s, 40Gbps]\n- [h1, s, 40Gbps]\n- [h2, s, 10Gbps]\n"
    )
    return path


def test_a_fabric_file_is_simulated_with_its_own_speeds(tmp_path):
    answer = run(
        "sync", "--physical", rack(tmp_path), "--logical", "mesh", "--size", "75MB", "--latency", "0", "--json"
    )
    (row,) = json.loads(answer.stdout)["rows"]
    # Two thirds of 75 MB out of and into the slow host in each phase, at 1.25 GB/s.
    assert row["sync_time_s"] == pytest.approx(2 * 50e6 / 1.25e9)
    assert row["closed_form_s"] is None


def test_a_closed_form_that_does_not_exist_is_said(tmp_path):
    answer = run("sync", "--physical", rack(tmp_path), "--logical", "mesh", "--level", "closed")
    assert answer.returncode == 2
    assert "add --level flow" in answer.stderr


def test_names_that_look_like_markup_are_text(tmp_path):
    answer = run("fabric", rack(tmp_path, "[/x] [red]"))
    assert answer.returncode == 0
    assert "[/x] [red]" in answer.stdout


def test_the_fastest_is_a_simulated_time_and_not_a_bound():
    answer = run("sync", "--physical", "fat-tree:4", "--routing", "ecmp", "--logical", "mesh")
    row = next(line for line in answer.stdout.splitlines() if line.startswith(" fat-tree:4"))
    flow = " ".join(row.split("≥")[1].split()[2:4])
    assert f"fastest: mesh on fat-tree:4, {flow}" in answer.stdout


def test_ctrl_c_stops_with_a_word_and_writes_nothing(tmp_path):
    page = tmp_path / "page.html"
    script = (
        "import os, signal, sys, ropewalk.sync\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it\n"
        "def interrupted(*_):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    signal.pause()\n"
        "ropewalk.sync.answer = interrupted\n"
        "from ropewalk.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, "sync", "--page", str(page)]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert stopped.returncode == 130
    assert stopped.stderr == "ropewalk: stopped; nothing was written\n"
    assert not page.exists()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("ropewalk.sync.answer", "nothing was written"),  # in the bar of a study
        ("ropewalk.sync.SyncQuestion", "nothing was written"),  # before it
        ("typer.rich_utils.rich_format_error", "nothing was written"),  # while a mistake is shown
        ("ropewalk.cli.sync.print_tables", "files that were named before are complete"),
    ],
)
def test_ctrl_c_says_what_is_left_wherever_it_lands(tmp_path, where, said):
    page = tmp_path / "page.html"
    module, _, name = where.rpartition(".")
    script = (
        f"import os, signal, sys, ropewalk.sync, {module} as place\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def interrupted(*_, **__):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    signal.pause()\n"
        f"place.{name} = interrupted\n"
        "from ropewalk.cli import main\n"
        "main()\n"
    )
    asked = ("--mistyped",) if "rich" in where else ("--physical", "ring:4", "--logical", "ring", "--level", "closed")
    command = [sys.executable, "-c", script, "sync", *asked, "--page", str(page)]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert stopped.returncode == 130
    assert stopped.stderr.endswith(f"ropewalk: stopped; {said}\n")
    assert stopped.stderr.count("stopped") == 1
    assert page.exists() == ("named" in said)


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
