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
from pathlib import Path
from typing import Any

import pytest
from service_process import PATIENCE_S, Process, process

from ropewalk.serve.client import Client

pytestmark = pytest.mark.extras
SMALL = ("--fabric", "leaf-spine:4x4x4", "--gpus-per-server", "2")


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
