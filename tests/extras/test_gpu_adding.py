"""The script that measures how fast a GPU adds runs on a CPU with tiny sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

pytestmark = pytest.mark.extras

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_adding.py"
PATIENCE_S = 1800


def test_rates_are_bytes_of_one_operand_per_second(tmp_path):
    path = tmp_path / "adding.json"
    command = [sys.executable, str(SCRIPT), str(path), "--quick", "--seconds", str(PATIENCE_S)]
    subprocess.run(command, check=True, timeout=PATIENCE_S, capture_output=True)
    found = json.loads(path.read_text())
    assert found["failed"] == []
    assert {(row["part"], row["precision"]) for row in found["rows"]} == {
        ("alone", "bf16"), ("alone", "fp32"), ("several", "bf16"), ("several", "fp32"),
    }  # fmt: skip
    for row in found["rows"]:
        assert row["bytes_per_s"] == row["size_bytes"] / row["seconds"]
