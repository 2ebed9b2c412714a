"""The tutorial, from a module to a job on four processes, runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from documented import blocks

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

pytestmark = pytest.mark.extras

PAGE = "docs/tutorial.md"
PATIENCE_S = 1800
PROGRAMS = {
    "ropewalk": [sys.executable, "-m", "ropewalk"],
    "torchrun": [sys.executable, "-m", "torch.distributed.run"],
    "python": [sys.executable],
}


def test_the_tutorial_ends_with_the_same_losses_on_four_processes_and_on_one(tmp_path: Path) -> None:
    (file,) = blocks(PAGE, "python")
    (tmp_path / "net.py").write_text(file.text)
    printed = []
    for block in blocks(PAGE, "console"):
        for command in block.commands:
            ran = subprocess.run(
                [*PROGRAMS[command[0]], *command[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S,
                env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
            )  # fmt: skip
            assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stderr[-3000:]}"
            printed.append(ran.stdout)
    losses = [[line.split(",")[0] for line in out.splitlines() if line.startswith("step ")] for out in printed[-2:]]
    assert len(losses[0]) == 3
    assert losses[0] == losses[1]
    assert (tmp_path / "job" / "README.md").is_file()
