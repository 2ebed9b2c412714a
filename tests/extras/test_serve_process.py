"""`ropewalk serve` as a process: it starts, is killed, goes on, ends when it is told to; over TCP, TLS and a socket."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ropewalk.serve.client import Client

pytestmark = pytest.mark.extras
PATIENCE_S = 300.0
SMALL = ("--fabric", "leaf-spine:4x4x4", "--gpus-per-server", "2")


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


def live(client: Client) -> list[tuple[Any, ...]]:
    rows = client.ask("GET", "/v1/jobs", query={"state": "live", "full": "true"}).document["jobs"]
    return [(row["id"], row["state"], row["version"], json.dumps(row["allocation"])) for row in rows]


def test_killed_it_goes_on_with_what_was_acknowledged_and_told_to_end_it_ends(tmp_path: Path) -> None:
    with process(tmp_path, *SMALL, "--no-auth") as first:
        client = Client(first.url)
        for name, gpus in (("a", 8), ("b", 4), ("c", 16)):
            assert client.ask("POST", "/v1/jobs", {"name": name, "gpus": gpus}).status in (201, 202)
        before = live(client)
        first.kill()
    assert "ropewalk/serve.db" in first.said[1]
    with process(tmp_path, "--no-auth") as second:
        client = Client(second.url)
        assert live(client) == before
        assert client.ask("POST", "/v1/jobs/j1/end").status == 200
        assert second.end() == 0
    events = [json.loads(line)["event"] for line in second.log.read_text().splitlines() if line.startswith("{")]
    assert events[-2:] == ["closing", "ended"]
    with process(tmp_path, "--no-auth", "--queue", "smallest") as third:
        assert "queue smallest" in third.said[0]
        assert third.end(signal.SIGINT) == 0


def test_a_second_process_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with process(tmp_path, *SMALL, "--no-auth"):
        second = Process(tmp_path, "--no-auth")
        assert second.process.wait(PATIENCE_S) == 2
        assert "another process runs on the store" in second.log.read_text()


def test_over_tls_and_over_a_socket(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make a certificate with")
    key, certificate, path = tmp_path / "key.pem", tmp_path / "cert.pem", tmp_path / "s.sock"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    made = subprocess.run(
        [sys.executable, "-m", "ropewalk", "serve", "token", "add", "--role", "submit", "--name", "ci"],
        check=True, capture_output=True, text=True, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    token = made.stdout.strip()
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key), "--socket", str(path), "--socket-role", "read")
    with process(tmp_path, *SMALL, *tls) as served:
        assert served.url.startswith("https://")
        over_tls = Client(served.url, token, authority=str(certificate))
        assert over_tls.ask("POST", "/v1/jobs", {"name": "a", "gpus": 2}).status == 201
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        over_socket = Client(f"unix:{path}")
        assert over_socket.ask("GET", "/v1/status").document["jobs"]["running"] == 1
        assert over_socket.ask("POST", "/v1/jobs/j1/end").status == 403
        old = ssl.create_default_context(cafile=str(certificate))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        old.minimum_version = ssl.TLSVersion.TLSv1_2
        with urllib.request.urlopen(f"{served.url}/healthz", context=old) as answer:
            assert answer.status == 200
        assert served.end() == 0
    assert not path.exists()
    assert token.split("_", 2)[2] not in served.log.read_text()
