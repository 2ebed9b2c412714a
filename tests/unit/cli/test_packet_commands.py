"""Packets on the command line: levels, transports, switches, and bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk.cli import main

ROPEWALK = [sys.executable, "-c", "from ropewalk.cli import main; main()"]
GRAPH = Path(__file__).parents[3] / "examples" / "two-layer-step.yaml"
SMALL = ("--physical", "switch:4", "--size", "40kB", "--latency", "0", "--hop-latency", "1us")


def run(*arguments):
    return subprocess.run([*ROPEWALK, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_sync_prints_levels_side_by_side_and_pauses():
    answer = run(
        "sync", *SMALL, "--logical", "ps", "--size", "4MB", "--level", "flow,wire,packet", "--transport",
        "rdma-pfc,dctcp", "--buffer", "300kB",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    for word in (
        "flow",
        "wire",
        "packet",
        "rdma-pfc",
        "dctcp",
        "ps with rdma-pfc",
        "pause frames",
        "hosts: 3 of 4 paused, median",
        "fastest: ps on switch:4",
    ):
        assert word in answer.stdout
    assert "…" not in answer.stdout  # no column was cut


def test_sync_as_json_tells_transport_and_packets():
    answer = run("sync", *SMALL, "--logical", "hips", "--level", "packet", "--json")
    rows = json.loads(answer.stdout)["rows"]
    assert [(row["level"], row["transport"]) for row in rows] == [("closed", None), ("flow", None), ("packet", "rdma")]
    assert rows[-1]["packet"]["drops"] == 0


def test_a_study_without_numbers_is_sized_for_packets_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["ropewalk", "sync", "--logical", "ring", "--physical", "torus", "--level", "packet", "--json"]
    )
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert {(row["hosts"], row["size_bytes"]) for row in told["rows"]} == {(16, 4_000_000)}
    assert any("--hosts 16 (fluid: 64), --size 4MB (fluid: 575MB)" in note for note in told["notes"])


def test_a_task_graph_runs_packet_by_packet_and_auto_says_why(tmp_path):
    page = tmp_path / "run.html"
    answer = run(
        "simulate", GRAPH, "--fabric", "switch:4", "--level", "packet", "--transport", "rdma", "--page", page, "--json"
    )
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert told["level"] == "packet"
    assert told["packet"]["events"] > 0
    assert "Packets</h2>" in page.read_text(encoding="utf-8")
    answer = run("simulate", GRAPH, "--fabric", "switch:4", "--level", "auto")
    assert answer.returncode == 0, answer.stderr
    assert "Level " in answer.stdout


def test_a_training_step_runs_packet_by_packet():
    answer = run(
        "simulate", "alexnet", "--gpus", "4", "--gpus-per-server", "1", "--fabric", "switch", "--level", "packet",
        "--payload", "32768B", "--json",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert told["network"]["level"] == "packet"
    assert told["network"]["packet"]["drops"] == 0
    assert told["step_time_s"] > told["compute_s"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("sync", "--level", "atoms", "--transport", "tcp"), "unknown level 'atoms'"),
        (("sync", *SMALL, "--level", "packet", "--transport", "quic"), "there is no transport 'quic'"),
        (("sync", *SMALL, "--level", "packet", "--transport", ""), "--transport is empty"),
        (("sync", *SMALL, "--level", "packet", "--payload", "0B"), "payload of a packet is 0 bytes"),
        (("sync", *SMALL, "--level", "packet", "--buffer", "100B"), "does not hold one packet"),
        (("sync", *SMALL, "--level", "packet", "--ecn", "640kB,160kB,0.2"), "above Kmax"),
        (("sync", *SMALL, "--level", "packet", "--ecn", "640kB"), "KMIN,KMAX,PMAX"),
        (("sync", *SMALL, "--level", "packet", "--ecn", "1kB,2kB,often"), "'often' is not a number"),
        (("sync", *SMALL, "--level", "packet", "--ecn", "1kB,2kB,1.5"), "Pmax is 1.5"),
        (("sync", *SMALL, "--level", "packet", "--port-queue", "100kB"), "--port-queue would have no effect"),
        (("sync", *SMALL, "--level", "packet", "--min-rto", "10ms"), "--min-rto would have no effect"),
        (("sync", *SMALL, "--level", "packet", "--transport", "tcp", "--ecn", "1kB,2kB,1"), "--ecn would have"),
        (
            ("sync", *SMALL, "--level", "packet", "--transport", "tcp", "--port-queue", "500B"),
            "does not hold one packet",
        ),
        (("sync", *SMALL, "--level", "packet", "--transport", "tcp", "--min-rto", "0s"), "give a positive least"),
        (("sync", *SMALL, "--level", "packet", "--transport", "dctcp", "--port-queue", "30kB"), "raise --port-queue"),
        (("sync", *SMALL, "--level", "packet", "--spread", "wide"), "unknown spread 'wide'"),
        (("sync", *SMALL, "--mix", "0GB/s"), "0GB/s"),
        (("sync", *SMALL, "--mix", "network:5GB/s"), "leave network out"),
        (("sync", *SMALL, "--level", "packet", "--reduce", "5GB/s"), "--mix 5GB/s"),
        (("sync", *SMALL, "--level", "packet", "--most-events", "0"), "--most-events"),
        (("sync", *SMALL, "--level", "packet", "--transport", "hpcc", "--spread", "spray"), "telemetry"),
        (("sync", *SMALL, "--level", "packet", "--transport", "hpcc", "--routing", "spray"), "telemetry"),
        (("sync", *SMALL, "--transport", "tcp"), "--transport would have no effect"),
        (("sync", *SMALL, "--level", "wire", "--payload", "4kB", "--buffer", "1MB"), "--buffer would have no effect"),
        (("sync", "--size", "575MB", "--hosts", "64", "--level", "packet"), "choose a smaller --size"),
        (("simulate", GRAPH, "--fabric", "switch:4", "--buffer", "1MB"), "--buffer would have no effect"),
        (("simulate", GRAPH, "--fabric", "switch:4", "--level", "deep"), "unknown level 'deep'"),
        (
            ("simulate", GRAPH, "--fabric", "switch:4", "--level", "packet", "--transport", "x"),
            "there is no transport 'x'",
        ),
    ],
)
def test_bad_input_is_one_message_with_exit_code_two_and_nothing_is_written(
    arguments, part, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["ropewalk", *map(str, arguments), "--page", str(tmp_path / "page.html")])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capsys.readouterr()
    assert stopped.value.code == 2, err
    assert part in " ".join(err.split())
    assert "Traceback" not in err
    assert out == ""
    assert not list(tmp_path.iterdir())
