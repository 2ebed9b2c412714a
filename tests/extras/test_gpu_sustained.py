"""The script that measures steps and parts on a GPU runs whole on a CPU with tiny sizes, and computes what it says."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_steps import measured_now
from ropewalk.workload.zoo import build

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

pytestmark = pytest.mark.extras

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PATIENCE_S = 1800


@pytest.fixture(scope="module")
def scripts():
    """The modules of the script, which lie beside it."""
    sys.path.insert(0, str(BENCHMARKS))
    import gpu_models
    import gpu_parts
    import gpu_sustained

    yield gpu_models, gpu_parts, gpu_sustained
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("gpu") / "sustained.json"
    command = [sys.executable, str(BENCHMARKS / "gpu_sustained.py"), str(path), "--quick", "--seconds", str(PATIENCE_S)]
    subprocess.run(command, check=True, timeout=PATIENCE_S, capture_output=True)
    return json.loads(path.read_text())


def test_everything_runs_and_nothing_is_left_out(written):
    assert written["failed"] == []
    assert written["skipped"] == []
    kinds = {(row["part"], row.get("kind") or row.get("stack") or row["optimiser"]) for row in written["rows"]}
    updates = {("update", name) for name in ("adamw", "adamw_fused", "adamw_loop")}
    assert kinds == updates | {
        ("step", "fsdp2"), ("step", "megatron"), ("kernel", "attention"), ("kernel", "scan"), ("kernel", "matmul"),
    }  # fmt: skip


def test_a_run_without_time_says_what_it_skipped(tmp_path):
    path = tmp_path / "sustained.json"
    command = [sys.executable, str(BENCHMARKS / "gpu_sustained.py"), str(path), "--quick", "--seconds", "0"]
    subprocess.run(command, check=True, timeout=PATIENCE_S, capture_output=True)
    found = json.loads(path.read_text())
    assert found["rows"] == []
    assert "updates" in found["skipped"]


@pytest.mark.parametrize("day", [1, 2, 3])
def test_every_step_that_is_measured_can_be_predicted_and_has_as_many_parameters(scripts, day):
    models, _, sustained = scripts
    for case in sustained.DAYS[day]:
        workload = build(case.model, case.batch, case.sequence, stack=case.stack)
        if case.code == "lean":
            lean = models.lean_llama(case.model, "meta", "eager", merged=case.stack == "megatron")
            assert sum(weight.numel() for weight in lean.parameters()) == workload.parameters()


def test_a_step_that_does_not_run_is_said_and_does_not_cost_the_others(scripts, tmp_path, monkeypatch):
    _, _, sustained = scripts
    path = tmp_path / "sustained.json"
    unknown = sustained.Case("fsdp2", "nonesuch:layers=1", 2, 16)
    monkeypatch.setattr(sustained, "QUICK", (unknown, sustained.Case("fsdp2", "tiny:layers=1", 2, 16)))
    monkeypatch.setattr(sys, "argv", ["gpu_sustained.py", str(path), "--quick", "--only", "lean"])
    sustained.main()
    found = json.loads(path.read_text())
    assert [one["name"] for one in found["failed"]] == [unknown.name]
    assert "nonesuch" in found["failed"][0]["why"]
    assert [row["model"] for row in found["rows"]] == ["tiny:layers=1"]


def test_what_has_not_ended_when_the_time_is_over_is_cut_off(scripts, tmp_path, monkeypatch):
    _, _, sustained = scripts
    path = tmp_path / "sustained.json"

    def never_ends(*_, **__):
        while True:
            pass

    monkeypatch.setattr(sustained, "measured", never_ends)
    monkeypatch.setattr(sustained.Case, "takes_s", 0.0)
    monkeypatch.setattr(sustained, "QUICK", (sustained.Case("eager", "tiny:layers=1", 2, 16),))
    monkeypatch.setattr(sys, "argv", ["gpu_sustained.py", str(path), "--quick", "--only", "tiny", "--seconds", "1"])
    sustained.main()
    found = json.loads(path.read_text())
    assert "OutOfTime" in found["failed"][0]["why"]


@pytest.mark.parametrize("day", [3])
def test_steps_of_a_day_stand_in_the_table_of_predictions(scripts, day):
    _, _, sustained = scripts
    with (BENCHMARKS.parent / "tests" / "data" / "h200_predicted_steps.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["day"] == str(day)]
    listed = [(row["stack"], row["precision"], row["model"], int(row["batch"]), int(row["sequence"])) for row in rows]
    cases = [(one.stack, one.precision, one.model, one.batch, one.sequence) for one in sustained.DAYS[day]]
    assert listed == cases


def test_measured_rows_are_set_beside_predictions(tmp_path):
    named = {"part": "step", "stack": "fsdp2", "precision": "bf16", "model": "llama-7b:layers=1", "batch": 1}
    timed = {"sequence": 512, "optimiser": "adamw", "forward_backward_s": 0.01, "step_s": 0.02, "parameters": 1}
    kernel = {"part": "kernel", "seconds": 1e-3}
    rows = [
        {**named, **timed, "code": "lean", "sharded": False},
        {**named, **timed, "code": "lean", "sharded": True},
        {**kernel, "precision": "bf16", "kind": "scan", "form": "backward", "dims": [1, 512, 8, 64, 128, 1, 128]},
        {**kernel, "precision": "fp8", "kind": "matmul", "form": "forward", "dims": [1, 4096, 4096, 4096]},
        {**kernel, "precision": "fp8", "kind": "matmul", "form": "forward_rowwise", "dims": [1, 4096, 4096, 4096]},
        {"part": "update", "precision": "bf16", "tensors": "few", "count": 4, "parameters": 10**9,
         "optimiser": "adamw", "seconds": 1e-3},
    ]  # fmt: skip
    path = tmp_path / "sustained.json"
    path.write_text(json.dumps({"rows": rows}))
    steps, parts = measured_now(path)
    assert [step.predicted.stack for step in steps] == ["fsdp2"]
    assert len(parts) == 3
    assert all(part.predicted_s > 0 for part in parts)


def test_a_scan_in_chunks_is_the_recurrence_token_by_token(scripts):
    _, parts, _ = scripts
    batch, tokens, heads, size, state, groups = 2, 12, 4, 3, 5, 2
    dice = torch.Generator().manual_seed(1)
    x, writes, reads = (
        torch.randn(batch, tokens, *shape, generator=dice)
        for shape in ((heads, size), (groups, state), (groups, state))
    )
    decay = -torch.rand(batch, tokens, heads, generator=dice)
    kept, found = torch.zeros(batch, heads, size, state), []
    each = heads // groups
    for at in range(tokens):
        write, read = (part[:, at].repeat_interleave(each, 1)[:, :, None] for part in (writes, reads))
        kept = kept * decay[:, at].exp()[..., None, None] + write * x[:, at, :, :, None]
        found.append((kept * read).sum(-1))
    torch.testing.assert_close(parts.chunked_scan(x, decay, writes, reads, chunk=4), torch.stack(found, 1))


def test_merged_products_of_a_lean_block_are_the_separate_ones(scripts):
    models, _, _ = scripts
    room = {"device": "cpu", "dtype": torch.float32}
    merged = models.Products(8, (4, 2, 2), True, False, room)
    apart = models.Products(8, (4, 2, 2), False, False, room)
    for weight, part in zip(apart.weights, merged.weights[0].split((4, 2, 2)), strict=True):
        weight.data = part.detach()
    x = torch.randn(3, 8)
    for one, other in zip(merged(x), apart(x), strict=True):
        torch.testing.assert_close(one, other)
