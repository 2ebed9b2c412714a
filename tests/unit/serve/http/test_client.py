"""The client: retries that change nothing twice, refusals as errors, three kinds of address."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from ropewalk.errors import InputError
from ropewalk.serve.client import Client, Reply, ServiceFailed, ServiceUnreachable, client_of, raise_refused, token_of


def test_it_asks_over_tcp_and_over_the_unix_socket(shared):
    for url in (shared.url, f"unix:{shared.socket_path}", f"unix://{shared.socket_path}"):
        client = Client(url, shared.tokens["read"])
        assert client.ask("GET", "/v1/status").document["gpus"]["total"] == 16
        client.close()


def test_a_refusal_is_a_reply_and_becomes_an_error_on_request(shared):
    client = Client(shared.url, shared.tokens["read"])
    reply = client.ask("POST", "/v1/jobs", {"name": "a", "gpus": 2})
    assert (reply.status, reply.error["code"]) == (403, "forbidden")
    with pytest.raises(InputError, match="needs the role submit"):
        raise_refused(reply, client.where)


def test_events_go_on_where_they_ended(served):
    client = Client(served.url, served.tokens["submit"], sleep=lambda seconds: None)
    for _ in range(3):
        client.ask("POST", "/v1/jobs", {"name": "a", "gpus": 2})
    stream = client.events(after=0)
    seen = [next(stream)["seq"] for _ in range(4)]
    assert seen == [1, 2, 3, 4]
    stream.close()


SIGNED = {"Ropewalk-API": "1"}


class Flaky(BaseHTTPRequestHandler):
    """Fails as it is told to, and notes what it was asked."""

    plan: ClassVar[list] = []
    seen: ClassVar[list] = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.headers["Idempotency-Key"], body))
        what = self.plan.pop(0)
        if what == "break":
            self.connection.close()
            return
        status, text, headers = what
        self.send_response(status)
        for name, value in (SIGNED | headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def flaky():
    Flaky.plan, Flaky.seen = [], []
    server = HTTPServer(("127.0.0.1", 0), Flaky)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_broken_connection_is_tried_again_with_the_same_key(flaky):
    slept = []
    Flaky.plan = [
        "break",
        (503, b'{"error": {}}', {}),
        (429, b'{"error": {}}', {"Retry-After": "3"}),
        (201, b'{"id": "j1"}', {}),
    ]
    reply = Client(flaky, sleep=slept.append).ask("POST", "/v1/jobs", {"name": "a", "gpus": 2})
    assert (reply.status, reply.document) == (201, {"id": "j1"})
    assert len({key for key, _ in Flaky.seen}) == 1
    assert len({body for _, body in Flaky.seen}) == 1
    assert slept == [0.2, 0.5, 3.0]


def test_after_some_tries_it_says_what_is_wrong(flaky):
    Flaky.plan = [(503, b'{"error": {"message": "busy", "remedy": "wait"}}', {})] * 4
    reply = Client(flaky, sleep=lambda seconds: None).ask("POST", "/v1/jobs", {})
    with pytest.raises(ServiceFailed, match="busy: wait"):
        raise_refused(reply, "the service")
    Flaky.plan = ["break"] * 4
    with pytest.raises(ServiceUnreachable, match="start `ropewalk serve`"):
        Client(flaky, sleep=lambda seconds: None).ask("POST", "/v1/jobs", {})


@pytest.mark.parametrize("text", [b"<html>", b"[1]", b""])
def test_something_else_that_listens_there_is_no_service(flaky, text):
    Flaky.plan = [(200, text, {})]
    with pytest.raises(ServiceFailed, match="check that it is a ropewalk service"):
        Client(flaky).ask("POST", "/v1/jobs", {})


def test_another_service_that_speaks_json_is_no_service_of_ours(flaky):
    Flaky.plan = [(200, b'{"status": "ok"}', {"Ropewalk-API": "other"})]
    with pytest.raises(ServiceFailed, match="without the header Ropewalk-API: 1: check that it is a ropewalk service"):
        Client(flaky).ask("POST", "/v1/jobs", {})


@pytest.mark.parametrize("error", [{}, {"message": None}, {"remedy": "x"}, "no", None])
def test_a_refusal_without_words_names_its_status(error):
    with pytest.raises(InputError, match="status 404"):
        raise_refused(Reply(404, {"error": error}), "the service")


@pytest.mark.parametrize(
    "url", ["ftp://x", "127.0.0.1:8787", "http://", "http://x:y", "http://x/v2", "http://[::1", "http://x:99999"]
)
def test_addresses_that_are_none_are_refused(url):
    with pytest.raises(InputError, match="is not the address of a service"):
        Client(url)


def test_an_empty_variable_names_no_service():
    with pytest.raises(InputError, match="no service is given"):
        client_of(None, {"ROPEWALK_SERVICE": ""})


def test_tokens_come_from_the_environment_or_from_a_file_that_others_cannot_read(tmp_path):
    path = tmp_path / "token"
    path.write_text("rw_aaaaaaaa_b\n")
    path.chmod(0o600)
    assert token_of({}) is None
    assert token_of({"ROPEWALK_TOKEN": ""}) is None
    assert token_of({"ROPEWALK_TOKEN": "rw_x"}) == "rw_x"
    assert token_of({"ROPEWALK_TOKEN": str(path)}) == "rw_aaaaaaaa_b"
    assert token_of({"ROPEWALK_TOKEN": "rw_x"}, path) == "rw_aaaaaaaa_b"
    path.chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        token_of({}, path)
    with pytest.raises(InputError, match="does not exist"):
        token_of({}, tmp_path / "none")
    with pytest.raises(InputError, match="--service"):
        client_of(None, {})


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"rw_a\nX-B: c", "rw_\u00e9".encode(), b"rw_a\0", b"x" * 20_000])
def test_what_no_header_can_carry_is_no_token(tmp_path, content):
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InputError, match=r"the token file .*: "):
        token_of({}, path)
    with pytest.raises(InputError, match="the token in ROPEWALK_TOKEN is not one word"):
        token_of({"ROPEWALK_TOKEN": "rw_a\nb"})


def test_a_certificate_that_nobody_knows_is_said_at_once(tmp_path):
    import shutil
    import socket
    import ssl
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        for _ in range(2):
            try:
                with context.wrap_socket(listener.accept()[0], server_side=True) as one:
                    one.recv(1000)
                    one.sendall(b"HTTP/1.1 200 OK\r\nRopewalk-API: 1\r\nContent-Length: 2\r\n\r\n{}")
            except OSError:
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    url = f"https://localhost:{listener.getsockname()[1]}"
    with pytest.raises(ServiceUnreachable, match="ROPEWALK_CA"):
        Client(url).ask("GET", "/v1/status")
    assert Client(url, authority=str(certificate)).ask("GET", "/v1/status").document == {}
    thread.join()
    listener.close()
