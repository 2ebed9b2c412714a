"""The training loops that the manual shows run as they stand, on as many ranks as they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documented import blocks
from slurm_machine import free_ports

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

pytestmark = pytest.mark.extras

ROOT = Path(__file__).parents[2]
RANKS = 4
PATIENCE_S = 900


def examples(page: str) -> list[str]:
    """The examples of a page that begin a process group."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "init_process_group" in block]


def run_by_all_ranks(script: Path) -> list[str]:
    """What a script prints, line by line, started once for each rank as torchrun does; nothing leaves this machine."""
    port = str(free_ports(1)[0])
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(RANKS), "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1"}  # fmt: skip
    started = [
        subprocess.Popen(
            [sys.executable, str(script)], cwd=script.parent, env=os.environ | told | {"RANK": str(rank)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(RANKS)
    ]  # fmt: skip
    try:
        printed = [process.communicate(timeout=PATIENCE_S) for process in started]
    finally:
        for process in started:
            process.kill()
    assert not any(process.returncode for process in started), printed[0][1][-3000:]
    return [line for out, _ in printed for line in out.splitlines()]


def test_the_training_loops_of_the_page_about_collectives_run(tmp_path):
    hooked, halves = examples("docs/collective.md")
    (tmp_path / "hooked.py").write_text(hooked)
    (tmp_path / "halves.py").write_text(halves)
    run_by_all_ranks(tmp_path / "hooked.py")
    lines = run_by_all_ranks(tmp_path / "halves.py")
    assert lines == [f"{rank} [1.5, 1.5] {[1.5] * 8}" for rank in range(RANKS)]


@pytest.mark.parametrize(("number", "file"), [(0, "order.json"), (1, "stream.json")])
def test_training_loops_of_the_page_about_orders_end_with_the_same_weights_on_all_ranks(tmp_path, number, file):
    example = examples("docs/overlap.md")[number]
    (tmp_path / "train.py").write_text(example)
    weights = run_by_all_ranks(tmp_path / "train.py")
    assert len(weights) == RANKS
    assert len(set(weights)) == 1
    assert (tmp_path / file).is_file()


def test_the_commands_of_the_page_about_models_read_the_modules_that_it_shows(tmp_path, monkeypatch, ropewalk):
    monkeypatch.chdir(tmp_path)
    for shown in blocks("docs/models.md", "python"):
        if shown.text.startswith("# "):  # the name of its file
            Path(shown.text.splitlines()[0].removeprefix("# ")).write_text(shown.text)
    commands = [command for block in blocks("docs/models.md", "console") for command in block.commands]
    assert len(commands) == 2
    for command in commands:
        answer = ropewalk(*command[1:])
        assert answer.code == 0, answer.stderr


def test_the_collective_that_the_manual_runs_runs(ropewalk):
    shown = [command for block in blocks("docs/collective.md", "console") for command in block.commands]
    (run,) = [command for command in shown if "--run" in command]
    answer = ropewalk(*run[1:])
    assert answer.code == 0, answer.stderr
