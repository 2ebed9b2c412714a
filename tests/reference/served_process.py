"""`ropewalk serve` as a process of its own, which a test can kill, stop in its tracks and start again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ropewalk.serve.client import Client

PATIENCE_S = 300.0
"""Before a service is taken for lost: the machine may be busy with other things."""


class Served:
    """One service over one database; `options` are those of `ropewalk serve`."""

    def __init__(self, folder, *options, environment=None, socket=None):
        self.folder = Path(folder)
        self.socket = Path(socket) if socket is not None else self.folder / "ropewalk.sock"
        self._options, self._environment = options, environment or dict(os.environ)
        self._process = None
        self.kills = 0

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start()
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def start(self):
        """Start it and wait until it answers."""
        command = [
            sys.executable, "-m", "ropewalk", "serve", "--database", str(self.folder / "serve.db"), "--host", "none",
            "--socket", str(self.socket), *self._options,
        ]  # fmt: skip
        with open(self.folder / "serve.log", "ab") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the service does not start:\n{self.log()[-3000:]}")
            try:
                if self.ask("GET", "/readyz", tries=1)["status"] == "ready":
                    return
            except Exception:
                time.sleep(0.05)

    def kill(self):
        """kill -9."""
        self._process.kill()
        self._process.wait()
        self.kills += 1

    def hang(self):
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def ask(self, method, path, body=None, tries=3, **query):
        client = Client(f"unix:{self.socket}", timeout_s=60, sleep=time.sleep if tries > 1 else _at_once)
        try:
            reply = client.ask(method, path, body, query=query)
        finally:
            client.close()
        if reply.status >= 400:
            raise AssertionError(f"{method} {path}: {reply.status} {json.dumps(reply.document)}")
        return reply.document

    def jobs(self, state="live"):
        """Jobs of the controller, all pages."""
        found, after = [], None
        while True:
            page = self.ask("GET", "/v1/jobs", state=state, limit=500, after=after, full="true")
            found += page["jobs"]
            after = page.get("next")
            if after is None:
                return found

    def log(self):
        path = self.folder / "serve.log"
        return path.read_text(errors="replace") if path.exists() else ""


def _at_once(_):
    raise AssertionError("no answer")
