"""The exported PyTorch script trains a module of one's own on local processes: the losses of a single process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ropewalk.export.of_plan import EXPORTS
from ropewalk.hardware import read_cluster
from ropewalk.plans import ModelUse, Plan
from ropewalk.strategy import Order, Strategy
from ropewalk.strategy.order import launches_of

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')
pytestmark = pytest.mark.extras

MODULE = Path(__file__).parents[2] / "examples" / "own_module.py"
LAYERS = ["embedding", *(f"block {number}" for number in range(6)), "head"]
MODEL = ModelUse("llama:layers=6,hidden=64,heads=4,vocabulary=256", 32, "fp32")
STEPS, LIMIT_S, TOLERANCE = 3, 1800, 1e-5

CASES = {
    "DDP in planned launches": {"data": 2, "micro_batches": 2,
                                "order": Order(fusion=launches_of([LAYERS[:4:-1], LAYERS[4::-1]]))},
    "FSDP2 with recomputation": {"data": 2, "micro_batches": 2, "zero": 3, "recompute": "full"},
    "ZeRO-2": {"data": 2, "micro_batches": 2, "zero": 2},
    "tensor ranks": {"tensor": 2, "micro_batches": 2},
    "a zero-bubble pipeline, sharded": {"data": 2, "pipeline": 2, "micro_batches": 4, "zero": 1, "schedule": "zb-v"},
    "an uneven pipeline with DDP": {"data": 2, "pipeline": 2, "micro_batches": 4, "stages": (0, 5)},
}  # fmt: skip


def trained(script: Path, losses: Path, ranks: int) -> list[float]:
    """The losses of the script on so many local processes; in one process of its own with one."""
    command = [sys.executable, str(script), "--alone"]
    if ranks > 1:
        start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        command = [sys.executable, *start, str(script)]
    options = ["--module", f"{MODULE}:build", "--steps", str(STEPS), "--device", "cpu", "--losses", str(losses)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found: list[float] = json.loads(losses.read_text())
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_job_has_the_losses_of_one_process(case: str, tmp_path: Path) -> None:
    chosen: dict[str, Any] = CASES[case]
    strategy = Strategy(**chosen)
    plan = Plan(MODEL, read_cluster(f"1x{strategy.ranks}"), strategy)
    script = tmp_path / "train.py"
    EXPORTS.fitting("pytorch", plan).make(plan, script)
    alone = trained(script, tmp_path / "alone.json", 1)
    together = trained(script, tmp_path / "together.json", strategy.ranks)
    assert len(alone) == STEPS
    assert together == pytest.approx(alone, abs=TOLERANCE)


def test_a_module_that_does_not_fit_the_plan_is_refused_with_a_remedy(tmp_path: Path) -> None:
    plan = Plan(MODEL, read_cluster("1x2"), Strategy(data=2))
    EXPORTS.fitting("pytorch", plan).make(plan, tmp_path / "train.py")
    (tmp_path / "bare.py").write_text("def build(): ...\n")
    command = [sys.executable, tmp_path / "train.py", "--module", f"{tmp_path / 'bare.py'}:build", "--alone"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert run.returncode == 1
    assert "has no function batch: add it" in run.stderr
