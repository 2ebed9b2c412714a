"""`ropewalk simulate` from outside: what it runs, what it prints, what it writes and what it refuses."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

from ropewalk.cli import main
from ropewalk.cli.models import Subject, subject_of
from ropewalk.errors import InputError

ROPEWALK = [sys.executable, "-c", "from ropewalk.cli import main; main()"]
SMALL = "gpt:layers=2,hidden=256,heads=8,vocabulary=2048"


def run(*arguments, cwd=None):
    return subprocess.run([*ROPEWALK, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False)


def test_the_headline_question_is_answered_in_words():
    answer = run("simulate", "gpt2", "--gpus", 8)
    assert answer.returncode == 0, answer.stderr
    for part in ("gpt2 on 8 x h200", "% of the step is compute", "exposed: data", "memory:", "costs: measured on h200"):
        assert part in answer.stdout


def test_everything_asked_for_is_written_and_printed(tmp_path):
    answer = run(
        "simulate", SMALL, "--seq", 128, "--gpus", 4, "--tp", 2, "--batch", 8, "--json", "--trace", tmp_path / "t.json",
        "--chakra", tmp_path / "et" / "step", "--tasks", tmp_path / "tasks.csv", "--page", tmp_path / "page.html",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["step_time_s"] == pytest.approx(
        found["compute_s"] + found["exposed_communication_s"] + found["bubble_s"]
    )
    assert found["strategy"]["data"] == 2
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {"process_name", "thread_name"} <= {event["name"] for event in events}
    assert sorted(path.name for path in (tmp_path / "et").iterdir()) == [
        *(f"step.{rank}.et" for rank in range(4)),
        "step.json",
    ]
    with (tmp_path / "tasks.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == found["tasks"]
    assert max(float(row["end_s"]) for row in rows) == pytest.approx(found["step_time_s"])
    assert "<canvas" in (tmp_path / "page.html").read_text()

    # The Chakra trace that was written is itself something to simulate, and takes as long.
    again = run("simulate", tmp_path / "et" / "step", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["step_time_s"] == pytest.approx(found["step_time_s"])
    idle = run("simulate", tmp_path / "et" / "step", "--straggler", "0:2")
    assert idle.returncode == 2
    assert "--straggler would have no effect: a Chakra trace fixes" in idle.stderr


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("gtp2",), "gpt2"),
        (("gpt2", "--gpus", 8, "--tp", 5), "does not divide 8 GPUs"),
        (("gpt2", "--tp", 5, "--dp", 1), "12 attention heads"),
        (("gpt2", "--straggler", "one:2"), "RANK:FACTOR"),
        (("gpt2", "--hosts", 8), "--gpus"),
        (("gpt2", "--bucket", "25"), "has no unit"),
        (("gpt2", "--order", "last"), "there is no order 'last'"),
        (("gpt2", "--partition", "0B"), "pieces of 0 bytes carry nothing"),
        (("gpt2", "--zero", 3, "--partition", "4MB"), "set zero to 0 or 1"),
        (("gpt2", "--zero", 1, "--order", "streamed"), "set zero to 0, or use an order with a barrier"),
        (("gpt2", "--tasks", "tasks.xls"), ".csv or .parquet"),
        (("gpt2", "--device", "abacus"), "abacus"),
        (("gpt2", "--routing", "fastest"), "there is no router"),
        (("gpt2", "--algorithm", "star"), "star"),
        (("gpt2", "--page", "/proc/none/x.html"), "cannot write"),
        (("gpt3-175b", "--gpus", 8), "GB on gpu h200"),
        (("missing.yaml",), "missing.yaml"),
        (("step.0.et",), "one rank of a Chakra trace"),
        (("",), "not in the zoo"),
        ((".",), "not in the zoo"),
        (("none.txt",), "none.txt does not exist"),
        (("gpt2", "--seed", -1), "--seed"),
        (("gpt2", "--gpus", 10**8), "ask for fewer GPUs"),
        (("gpt2", "--device", "cpu"), "--nvlink-bandwidth"),
        (("gpt2", "--bandwidth", ""), "not a number with a unit"),
        (("gpt2", "--fabric", ""), "network is empty"),
        (("gpt2", "--rank-order", ""), "placement order"),
        (("gpt2", "--cluster", "4x8", "--gpus", 16), "it has 32 GPUs, but --gpus is 16"),
        (("gpt2", "--cluster", "dgx-h100:2", "--device", "a100"), "it has servers of h100 GPUs, but --device is a100"),
        (("gpt2", "--cluster", "2x8", "--nics", 3), "do not divide evenly over 3 NICs: give 1, 2, 4 or 8"),
        (("gpt2", "--cluster", "pod.yaml"), "cluster file pod.yaml does not exist"),
        (("gpt2", "--chakra", ""), "give the prefix of the files of all ranks"),
        (("gpt2", "--page", "trace.json"), "another output is written to it"),
    ],
)
def test_bad_input_is_one_message_exit_code_two_and_no_file(tmp_path, monkeypatch, capsys, arguments, part):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ropewalk", "simulate", *map(str, arguments), "--trace", "trace.json"])
    with pytest.raises(SystemExit) as stopped:
        main()
    written = capsys.readouterr()
    assert stopped.value.code == 2
    assert part in written.err
    assert written.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_task_graph_needs_a_fabric_and_knows_no_collectives():
    example = "examples/two-layer-step.yaml"
    assert "give --fabric" in run("simulate", example).stderr
    answer = run("simulate", example, "--fabric", "switch:4", "--chakra", "step")
    assert answer.returncode == 2
    assert "has no collectives" in answer.stderr


def test_ports_are_wired_for_the_step(tmp_path):
    place = tmp_path / "ports.yaml"
    place.write_text("device: h100\nservers:\n- {count: 4, gpus: 2, nic_bandwidth: 100Gbps}\nports: {degree: 4}\n")
    answer = run("simulate", SMALL, "--seq", 128, "--cluster", place, "--tp", 2)
    assert "cables: servers 0-1-2-3 form a ring of 4 (stride 1, 2 cables each)" in answer.stdout


def test_what_is_simulated_is_never_overwritten(tmp_path, monkeypatch, capsys):
    graph = tmp_path / "step.yaml"
    graph.write_text("tasks:\n- {compute: 1ms, gpu: 0}\n")
    monkeypatch.setattr(
        sys, "argv", ["ropewalk", "simulate", str(graph), "--fabric", "switch:2", "--trace", str(graph)]
    )
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "this command reads it: choose another path" in capsys.readouterr().err
    assert graph.read_text().startswith("tasks:")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--tp", 2), "--tp would have no effect: a task graph has no collectives"),
        (("--jitter", 0.1, "--straggler", "0:2"), "--jitter, --straggler would have no effect"),
        (("--algorithm", "ring"), "--algorithm would have no effect"),
    ],
)
def test_options_that_would_change_nothing_are_refused(monkeypatch, capsys, options, part):
    example = "examples/two-layer-step.yaml"
    monkeypatch.setattr(sys, "argv", ["ropewalk", "simulate", example, "--fabric", "switch:4", *map(str, options)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert part in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "subject"),
    [
        ("a.yaml", "description: x\ntasks:\n- {compute: 1ms, gpu: 0}\n", Subject.TASK_GRAPH),
        ("b.yaml", "{tasks: [{compute: 1ms, gpu: 0}]}\n", Subject.TASK_GRAPH),
        ("c.json", '{"description": "x", "tasks": []}', Subject.TASK_GRAPH),
        ("d.yml", "name: mine\nlayers:\n- {}\n", Subject.MODEL),
        ("e.json", '{"name": "mine", "layers": []}', Subject.MODEL),
        ("f.npz", "", Subject.TASK_GRAPH),
        ("g.onnx", "", Subject.MODEL),
        ("h.0.et", "", None),
    ],
)
def test_what_is_simulated_is_told_by_what_is_there(tmp_path, name, content, subject):
    (tmp_path / name).write_text(content)
    if subject is None:
        assert subject_of(str(tmp_path / "h")) is Subject.CHAKRA
    else:
        assert subject_of(str(tmp_path / name)) is subject


def test_names_that_are_no_files_are_models():
    assert subject_of("llama-7b") is Subject.MODEL
    assert subject_of("model.py:Net") is Subject.MODEL


def test_a_file_that_is_neither_is_refused(tmp_path):
    path = tmp_path / "fabric.yaml"
    path.write_text("hosts: [a]\n")
    with pytest.raises(InputError, match="neither a plan nor a task graph nor a model"):
        subject_of(str(path))


def test_megatron_adds_up_gradients_in_float32_in_its_own_buckets_unless_told():
    common = ["simulate", SMALL, "--gpus", "8", "--batch", "8", "--seq", "128", "--stack", "megatron"]
    usual, told = run(*common), run(*common, "--bucket", "25MiB")
    assert "gradients: 4 bytes each, buckets of 160 MB" in usual.stdout
    assert "gradients: 4 bytes each, buckets of 26.21 MB" in told.stdout
