"""`ropewalk serve` as a process of its own, for tests: it listens on a port that is free, and ends with the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 300.0


class Process:
    """A service, and what it said first."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.log = folder / "log.jsonl"
        command = [sys.executable, "-m", "ropewalk", "serve", *words, "--port", "0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log.open("ab"), text=True,
            env={**os.environ, "XDG_STATE_HOME": str(folder)},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.said: list[str] = []
        for line in self.process.stdout:
            self.said.append(line.strip())
            if line.startswith("try: "):
                break
        self.url = next((line.split()[1] for line in self.said if line.startswith("listening: ")), "")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def process(folder: Path, *words: str) -> Iterator[Process]:
    found = Process(folder, *words)
    try:
        assert found.url, found.log.read_text()
        yield found
    finally:
        if found.process.poll() is None:
            found.kill()
