"""A real service in a process of its own, spoken to over its Unix socket, made to be killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "src"
READY_S = 300.0
"""On a machine that has to compile kernels first and has other things to do."""


class Gone(Exception):
    """The service did not answer, or not wholly."""


class Line:
    """One keep-alive connection; every answer is read to its last byte, or it is none."""

    def __init__(self, path: Path, timeout_s: float = 120.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
        except OSError as problem:
            self._socket.close()
            raise Gone(repr(problem)) from None
        self._stream = self._socket.makefile("rb")

    def ask(self, method: str, path: str, body: object = None, key: str | None = None) -> tuple[int, bytes]:
        """(status, body) of an answer."""
        sent = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(sent)}\r\n"
        if body is not None:
            head += "Content-Type: application/json\r\n"
        if key is not None:
            head += f"Idempotency-Key: {key}\r\n"
        try:
            self._socket.sendall(head.encode() + b"\r\n" + sent)
            return self._answer()
        except (OSError, ValueError) as problem:
            raise Gone(repr(problem)) from None

    def _answer(self) -> tuple[int, bytes]:
        status = self._stream.readline()
        length: int | None = None
        while (line := self._stream.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if length is None or not status.endswith(b"\r\n"):
            raise Gone("no whole head")
        body = self._stream.read(length)
        if len(body) < length:
            raise Gone("half an answer")
        return int(status.split()[1]), body

    def document(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of an answer."""
        return json.loads(self.ask(method, path, body)[1])

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


class ServiceProcess:
    """`ropewalk serve` on a store; with a fail point it kills itself, and `kill` kills it at any time."""

    def __init__(
        self,
        folder: Path,
        database: str,
        *,
        fabric: str,
        fail_at: str = "",
        broken: bool = False,
        more: tuple[str, ...] = (),
    ) -> None:
        self.socket = folder / "s.sock"
        self.log = folder / "service.log"
        program = [sys.executable, str(HERE / "serve_broken.py")] if broken else [sys.executable, "-m", "ropewalk"]
        command = [
            *program, "serve", "--fabric", fabric, "--gpus-per-server", "4", "--database", database,
            "--socket", str(self.socket), "--port", "0", "--no-auth", "--quiet",
            "--rate", "100000", "--rate-per-address", "100000", *more,
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "ROPEWALK_FAILPOINT": fail_at}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def wait_until_ready(self) -> bool:
        """Until it answers; False where it died before."""
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                return False
            try:
                line = Line(self.socket, timeout_s=5.0)
                ready = line.ask("GET", "/readyz")[0] == 200
                line.close()
                if ready:
                    return True
            except Gone:
                pass
            time.sleep(0.02)
        raise AssertionError(f"the service is not ready after {READY_S:g} s: {self.log.read_text()[-2000:]}")

    def kill(self) -> int:
        """Kill it now, if it has not died already; answers its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        return self.process.wait()
