"""Calculon's answers to steps in its own words, from a process of its own (`calculon_side.py`)."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GET = "git clone https://github.com/calculon-ai/calculon, then --calculon FOLDER [--calculon-python PYTHON]"

Answer = dict[str, Any]


@dataclass(frozen=True)
class Calculon:
    """A checkout, and a Python that has what it imports (numpy, psutil, pandas)."""

    folder: Path
    python: str

    def answers(self, system: str, model: dict[str, int], executions: list[Answer], repeats: int = 1) -> Answer:
        """What it says about executions of a model on a system that it ships."""
        if not (self.folder / system).is_file():
            raise SystemExit(f"{self.folder} is no Calculon checkout ({system} is not there): {GET}")
        side = str(Path(__file__).with_name("calculon_side.py"))
        problem = {"model": model, "system": system, "executions": executions, "repeats": repeats}
        finished = subprocess.run(
            [self.python, side, str(self.folder)], input=json.dumps(problem), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if finished.returncode:
            raise SystemExit(f"Calculon's side failed (needs numpy, psutil, pandas):\n{finished.stderr}")
        found: Answer = json.loads(finished.stdout.splitlines()[-1])
        return found
