"""A real service on a free port of this machine, in this process: the writer, the gate, the parser, everything."""

import asyncio
import http.client
import json
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from ropewalk.serve.http import cluster_metrics, own_routes
from ropewalk.serve.http.application import LOCAL_NAMES, close, make_application, make_service
from ropewalk.serve.http.logs import LineLog
from ropewalk.serve.http.server import Listening, bound, server_of
from ropewalk.serve.http.settings import HttpSettings
from ropewalk.serve.http.tokens import new_token
from ropewalk.serve.service import open_writer
from ropewalk.serve.settings import Settings
from ropewalk.serve.store import open_store
from ropewalk.serve.store.tokens import Token, add_token
from ropewalk.tenancy.plant import plant

PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""
LIMITS = ("header_s", "body_s", "answer_s", "stall_s")
"""How long clients and answers may take."""


def patient(settings):
    """The settings, with as much patience as a busy machine needs where a test has not set a limit of its own."""
    usual = HttpSettings()
    return replace(settings, **{one: PATIENCE_S for one in LIMITS if getattr(settings, one) == getattr(usual, one)})


class Reply(NamedTuple):
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]


class Running:
    """A service that runs: how to ask it, and what it logged."""

    def __init__(self, service, port, log_path, socket_path, tokens):
        self.service, self.port, self.log_path, self.socket_path = service, port, log_path, socket_path
        self.tokens = tokens
        """Texts by role."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method, path, body=None, role="operate", raw=None, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if role is not None and self.tokens:
            sent.setdefault("Authorization", f"Bearer {self.tokens[role]}")
        content = raw
        if method in ("POST", "PUT", "PATCH", "DELETE"):
            sent.setdefault("Content-Type", "application/json")
            content = json.dumps(body if body is not None else {}).encode() if raw is None else raw
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body=content, headers={k: v for k, v in sent.items() if v is not None})
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read())
        finally:
            connection.close()

    def send(self, data, timeout=PATIENCE_S, read=True):
        """Bytes as they are; everything that comes back until the end of the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as raw:
            raw.sendall(data)
            found = b""
            while read and (part := raw.recv(65536)):
                found += part
            return found

    def logged(self):
        self.ask("GET", "/healthz")  # what was answered before is in the log now
        self.service.log.flush()
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]


@contextmanager
def running(
    folder: Path, fabric="leaf-spine:4x4x4", settings=None, tokens=("read", "submit", "operate"), at=None, beside=None
):
    """A service on an empty cluster of 16 GPUs; `beside` makes (routes of others, what they share) from its writer."""
    folder.mkdir(parents=True, exist_ok=True)
    log_path = folder / "log.jsonl"
    descriptor = log_path.open("ab")
    log = LineLog(descriptor.fileno())
    store = open_store(at or str(folder / "serve.db"))
    made = {}
    for role in tokens:
        token = new_token(role, role)
        add_token(store, Token(token.id, token.hash, role, role, 0.0))
        made[role] = token.text
    writer = open_writer(store, plant(fabric, gpus_per_server=2), Settings()).start()
    service = make_service(writer, patient(settings or HttpSettings(no_auth=not tokens)), log)
    listening = Listening(port=0, socket=folder / "s.sock")
    sockets = bound(listening)
    handlers, others = beside(writer) if beside is not None else ((), {})
    app = make_application(service, LOCAL_NAMES, handlers, **others)
    listens = threading.Event()
    server = server_of(app, listening, service.doors, log, lambda: close(service), listens.set)
    failed = []

    def run():
        try:
            asyncio.run(server.serve(sockets))
        except BaseException as problem:
            failed.append(problem)
        finally:
            listens.set()

    server.install_signal_handlers = lambda: None
    thread = threading.Thread(target=run)
    thread.start()
    assert listens.wait(PATIENCE_S), f"the service did not start within {PATIENCE_S:g} s"
    try:
        with patch.object(own_routes, "READY_S", PATIENCE_S), patch.object(cluster_metrics, "READ_S", PATIENCE_S):
            yield Running(service, sockets[0].getsockname()[1], log_path, folder / "s.sock", made)
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        writer.close()
        store.close()
        log.close()
        descriptor.close()
    assert not failed, failed
