"""`ropewalk plan` from outside: what it prints, what it writes and what it refuses."""

import json
import subprocess
import sys

import pytest

ROPEWALK = [sys.executable, "-c", "from ropewalk.cli import main; main()"]
TINY = (
    "topoopt-dlrm-dedicated:tables=1,rows=100000,width=512,bottom=512x2048,top=512", "--servers", 2, "--degree", 1,
    "--gpus-per-server", 1, "--batch", 240, "--device", "a100", "--dtype", "tf32", "--bandwidth", "100Gbps",
)  # fmt: skip


CANDLE = ("candle", "--device", "a100", "--gpus-per-server", 4, "--dtype", "tf32")


def run(*arguments):
    return subprocess.run([*ROPEWALK, "plan", *map(str, arguments)], capture_output=True, text=True, check=False)


def test_everything_asked_for_is_written_and_the_plan_reruns_to_the_same_bytes(tmp_path):
    files = {name: tmp_path / name for name in ("plan.json", "page.html", "patch.csv", "tables.csv")}
    answer = run(
        *TINY, "--json", "--compare", "ideal-switch,sip-ml", "--plan", files["plan.json"], "--page",
        files["page.html"], "--patch", files["patch.csv"], "--tables", files["tables.csv"],
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    record = json.loads(answer.stdout)
    assert set(record["baselines"]) == {"ideal-switch", "sip-ml"}
    assert record["step_time_s"] == json.loads(files["plan.json"].read_text())["prediction"]["step_time_s"]
    assert all(path.stat().st_size for path in files.values())

    again = run("--from", files["plan.json"], "--plan", tmp_path / "again.json")
    assert again.returncode == 0, again.stderr
    assert "reruns to the same plan" in again.stderr
    assert (tmp_path / "again.json").read_bytes() == files["plan.json"].read_bytes()


def test_a_plan_that_was_changed_is_noticed(tmp_path):
    made = run(*TINY, "--compare", "none", "--plan", tmp_path / "plan.json")
    assert made.returncode == 0, made.stderr
    record = json.loads((tmp_path / "plan.json").read_text())
    record["prediction"]["step_time_s"] *= 2
    (tmp_path / "plan.json").write_text(json.dumps(record))
    again = run("--from", tmp_path / "plan.json")
    assert again.returncode == 2
    assert "does not rerun to the same plan" in again.stderr


def test_the_table_shows_every_network_with_time_and_cost():
    answer = run(*TINY, "--compare", "all")
    assert answer.returncode == 0, answer.stderr
    for part in ("plan", "ideal-switch", "fat-tree-ecmp", "ocs-reconfig-no-relay", "vs. plan", "$2,016", "layers:"):
        assert part in answer.stdout
    assert "torus is left out" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dlrm", "--servers", 15), "even number of servers"),
        (("dlrm", "--servers", 4, "--degree", 4), "at most 3"),
        (("dlrm", "--bandwidth=-100Gbps"), "negative"),
        (("dlrmm",), "not in the zoo"),
        (
            ("dlrm", "--servers", 16, "--batch", 100),
            "does not divide evenly over 128 GPUs: give a multiple of 128, such as 128",
        ),
        (("dlrm", "--cluster", "8x4", "--servers", 16), "it has 8 servers, but --servers is 16"),
        (("dlrm", "--cluster", "8x4,1x8", "--degree", 4), "give equal ones"),
        (
            ("dlrm", "--cluster", "examples/cluster.yaml", "--degree", 4),
            "it has the network leaf-spine, so there are no ports to wire",
        ),
        (("dlrm", "--fabric", "torus:4x4", "--servers", 16), "the planner wires the ports itself"),
        ((*CANDLE, "--servers", 2, "--degree", 1), "use 4 servers"),
        (("dlrm", "--servers", 16, "--compare", "token-ring"), "use one of all, ideal-switch"),
        ((), "name either a model"),
        (("dlrm", "--from", "plan.json"), "or a plan to rerun"),
    ],
)
def test_what_cannot_be_planned_exits_with_two_and_a_remedy(arguments, message):
    answer = run(*arguments)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_plan_that_was_found_is_simulated_packet_by_packet():
    answer = run(*TINY, "--compare", "none", "--level", "packet", "--transport", "rdma-pfc", "--json")
    assert answer.returncode == 0, answer.stderr
    record = json.loads(answer.stdout)
    assert record["at_level"]["level"] == "packet"
    assert record["at_level"]["step_time_s"] >= record["step_time_s"]
    assert "add --level packet" in run(*TINY, "--buffer", "1MB").stderr
