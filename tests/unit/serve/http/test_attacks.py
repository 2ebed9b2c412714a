"""What attackers try, and what they get: the table of docs/operate.md, row by row, against a real service."""

import base64
import http.client
import json
import os
import re
import socket
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
from served import PATIENCE_S

from ropewalk.serve.http import gate, keyring, tokens
from ropewalk.serve.http.settings import HttpSettings

JOB = {"name": "a", "gpus": 2}


def status_of(answer: bytes) -> int:
    return int(answer[9:12])


# Who is there?


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer x",
        "Token rw_aaaaaaaa_" + "b" * 43,
        "Bearer rw_aaaaaaaa_" + "b" * 43,
        "Bearer rw_aaaaaaaa_" + "b" * 4000,
        "Bearer rw_\udcff_x".encode("latin-1", "replace").decode("latin-1"),
        "Basic !!!",
    ],
)
def test_no_token_a_wrong_one_and_nonsense_get_the_same_401(shared, header):
    reply = shared.ask("GET", "/v1/status", role=None, Authorization=header)
    assert (reply.status, reply.code) == (401, "unauthorized")
    assert reply.headers["www-authenticate"].startswith("Bearer")


def test_paths_are_not_shown_to_who_has_no_token(shared):
    assert shared.ask("GET", "/v1/nothing", role=None).status == 401
    assert shared.ask("GET", "/v1/nothing", role="read").status == 404


def test_a_token_with_one_letter_changed_is_refused(shared):
    text = shared.tokens["read"]
    other = text[:-1] + ("A" if text[-1] != "A" else "B")
    assert shared.ask("GET", "/v1/status", role=None, Authorization=f"Bearer {other}").status == 401


def test_a_token_may_come_as_the_password_of_basic(shared):
    pair = base64.b64encode(f"kube:{shared.tokens['read']}".encode()).decode()
    assert shared.ask("GET", "/v1/status", role=None, Authorization=f"Basic {pair}").status == 200


@pytest.mark.parametrize(
    ("role", "method", "path", "body"),
    [
        ("read", "POST", "/v1/jobs", JOB),
        ("read", "POST", "/v1/jobs/j1/end", {}),
        ("submit", "POST", "/v1/drain", {"parts": ["server:server0"]}),
        ("submit", "POST", "/v1/failures", {"parts": ["server:server0"]}),
        ("submit", "PUT", "/v1/policy", {"policy": "ecmp"}),
        ("submit", "POST", "/v1/reconcile", {}),
    ],
)
def test_a_role_too_small_gets_403_and_changes_nothing(shared, role, method, path, body):
    before = shared.ask("GET", "/v1/status").json
    reply = shared.ask(method, path, body, role=role)
    assert (reply.status, reply.code, reply.json["error"]["details"]["role"]) == (403, "forbidden", role)
    assert shared.ask("GET", "/v1/status").json == before


def test_a_job_of_somebody_else_is_not_changed_by_a_token_that_submits(served):
    acts = {"end": {}, "cancel": {}, "resize": {"gpus": 4}, "hold": {}, "release": {}, "bind": {"external": "pbs:1"}}
    job = served.ask("POST", "/v1/jobs", JOB, role="operate").json
    for act, body in (acts | {"progress": {"step": 1, "seconds": 1.0}}).items():
        reply = served.ask("POST", f"/v1/jobs/j1/{act}", body, role="submit")
        error = reply.json["error"]
        assert (reply.status, error["code"], error["details"]["owner"]) == (403, "forbidden", job["owner"]), act
        assert "operate" in error["remedy"]
    assert served.ask("GET", "/v1/jobs/j1").json == job


def test_a_token_changes_its_own_jobs_and_an_operator_all(served):
    own = served.ask("POST", "/v1/jobs", JOB, role="submit").json
    assert own["owner"].startswith("submit/")
    assert served.ask("POST", "/v1/jobs/j1/resize", {"gpus": 4}, role="submit").status == 200
    assert served.ask("POST", "/v1/jobs/j1/end", role="submit").json["outcome"] == "done"
    served.ask("POST", "/v1/jobs", JOB, role="submit")
    assert served.ask("POST", "/v1/jobs/j2/end", role="operate").json["owner"] == own["owner"]


def test_a_token_of_the_same_name_is_somebody_else(served):
    from ropewalk.serve.store.tokens import Token, add_token

    twin = tokens.new_token("submit", "submit")
    add_token(served.service.store, Token(twin.id, twin.hash, "submit", "submit", 0.0))
    served.service.keyring._read_at = -1e9
    served.ask("POST", "/v1/jobs", JOB, role="submit")
    reply = served.ask("POST", "/v1/jobs/j1/end", role=None, Authorization=f"Bearer {twin.text}")
    assert (reply.status, reply.code) == (403, "forbidden")


def test_a_job_that_ended_long_ago_still_belongs_to_somebody(served, monkeypatch):
    monkeypatch.setattr("ropewalk.serve.state.KEPT_ENDED", 1)
    for _ in range(3):
        job = served.ask("POST", "/v1/jobs", JOB, role="operate").json["id"]
        served.ask("POST", f"/v1/jobs/{job}/end")
    assert served.ask("POST", "/v1/jobs/j1/end", role="submit").code == "forbidden"


def test_nobody_says_in_a_body_whose_a_job_is(served):
    reply = served.ask("POST", "/v1/jobs", JOB | {"owner": "operate/aaaaaaaa"}, role="submit")
    assert (reply.status, "owner: unknown entry" in reply.json["error"]["message"]) == (422, True)
    served.ask("POST", "/v1/jobs", JOB | {"user": "operate"}, role="submit")
    assert served.ask("GET", "/v1/jobs/j1").json["owner"].startswith("submit/")


def test_the_name_of_a_job_writes_no_line_of_the_metrics(served):
    name = 'x"} 1 ropewalk_gpus{state="free\\'
    served.ask("POST", "/v1/jobs", JOB | {"name": name, "promised_step_s": 1.0}, role="submit")
    lines = served.ask("GET", "/metrics").body.decode().splitlines()
    assert [line for line in lines if line.startswith("ropewalk_gpus")] == [
        'ropewalk_gpus{state="used"} 2.0', 'ropewalk_gpus{state="free"} 14.0', 'ropewalk_gpus{state="drained"} 0.0'
    ]  # fmt: skip
    (told,) = [line for line in lines if line.startswith("ropewalk_job_step_seconds{")]
    assert told.endswith(r'name="x\"} 1 ropewalk_gpus{state=\"free\\",what="promised"} 1.0')


@pytest.mark.parametrize(
    "claim",
    [{"external": "slurm:7"}, {"labels": {"slurm-token": "00c0ffee00c0ffee"}}, {"labels": {"slurm-array": "7"}}],
)
def test_a_token_that_submits_cannot_make_a_job_one_of_slurms(served, claim):
    reply = served.ask("POST", "/v1/jobs", JOB | claim, role="submit")
    assert (reply.status, reply.code, reply.json["error"]["details"]) == (403, "forbidden", {"needed": "operate"})
    assert served.ask("GET", "/v1/jobs").json["jobs"] == []
    assert served.ask("POST", "/v1/jobs", JOB | claim, role="operate").status == 201


def test_a_token_that_submits_binds_its_job_to_other_schedulers_than_slurm(served):
    served.ask("POST", "/v1/jobs", JOB, role="submit")
    reply = served.ask("POST", "/v1/jobs/j1/bind", {"external": "slurm:7"}, role="submit")
    assert (reply.status, reply.code) == (403, "forbidden")
    assert served.ask("POST", "/v1/jobs/j1/bind", {"external": "pbs:7"}, role="submit").json["external"] == "pbs:7"
    served.ask("POST", "/v1/jobs", JOB, role="submit")
    assert served.ask("POST", "/v1/jobs/j2/bind", {"external": "slurm:7"}, role="operate").status == 200


@pytest.mark.parametrize(
    "body",
    [
        {"step": 10**400, "seconds": 1.0}, {"step": 1, "seconds": 1e400}, {"step": 1, "seconds": -1},
        {"step": 1, "steps": 2, "seconds": 1}, {"step": True, "seconds": 1}, {"step": 1, "seconds": "1"},
        {"step": 1, "seconds": 1, "at": 0}, {"step": 1, "seconds": 1, "generation": 7},
    ],
)  # fmt: skip
def test_a_job_cannot_report_what_never_was(served, body):
    job = served.ask("POST", "/v1/jobs", JOB, role="submit").json
    raw = json.dumps(body).replace("Infinity", "1e400").encode()
    assert served.ask("POST", "/v1/jobs/j1/progress", role="submit", raw=raw).status in (400, 422)
    assert served.ask("GET", "/v1/jobs/j1").json == job


def test_an_unknown_id_costs_the_attacker_as_many_slow_hashes_as_a_known_one(serving, monkeypatch):
    counted = []

    def slow(secret, kept):
        counted.append(kept)
        return tokens_matches(secret, kept)

    tokens_matches = tokens.matches
    monkeypatch.setattr(keyring.tokens, "matches", slow)
    with serving() as served:
        known = served.tokens["read"].split("_")[1]
        served.ask("GET", "/v1/status", role=None, Authorization=f"Bearer rw_{known}_{'x' * 43}")
        served.ask("GET", "/v1/status", role=None, Authorization=f"Bearer rw_aaaaaaaa_{'x' * 43}")
        assert len(counted) == 2
        assert counted[1] == tokens.nobody()


def test_who_guesses_tokens_is_locked_out_and_others_are_not(serving):
    with serving(settings=HttpSettings(failures_per_address=0.001)) as served:
        served.ask("GET", "/v1/status", role="read")  # known from here on
        replies = [
            served.ask("GET", "/v1/status", role=None, Authorization=f"Bearer rw_aaaaaaaa_{number:043}")
            for number in range(22)
        ]
        assert {reply.status for reply in replies[:20]} == {401}
        assert (replies[-1].status, int(replies[-1].headers["retry-after"]) > 0) == (429, True)
        assert served.ask("GET", "/v1/status", role="read").status == 200


def test_a_revoked_token_ends_within_the_next_reading(served):
    from ropewalk.serve.store.tokens import revoke_token

    assert served.ask("GET", "/v1/status", role="read").status == 200
    assert revoke_token(served.service.store, served.tokens["read"].split("_")[1], time.time())
    served.service.keyring._read_at = -1e9
    assert served.ask("GET", "/v1/status", role="read").status == 401


def test_the_key_of_another_user_replays_nothing(served):
    first = served.ask("POST", "/v1/jobs", JOB, role="submit", Idempotency_Key="same")
    other = served.ask("POST", "/v1/jobs", JOB, role="operate", Idempotency_Key="same")
    assert (first.json["id"], other.json["id"]) == ("j1", "j2")
    guessed = served.ask("POST", "/v1/jobs", JOB, role="operate", Idempotency_Key="submit/x:same")
    assert guessed.json["id"] == "j3"


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "caf\xe9"])
def test_a_key_that_is_no_key_is_refused(shared, key):
    assert shared.ask("POST", "/v1/jobs", JOB, Idempotency_Key=key).status == 400


# Bodies


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'"x"', 400),
        (b'{"name": "a", "gpus": 2, "gpus": 4}', 400),
        (b'{"name": "a", "gpus": 2}' + b"\x00", 400),
        (b'{"name": "a\x00", "gpus": 2}', 400),
        (b'{"name": "a\\u0000", "gpus": 2}', 400),
        (b'{"name": "a\\ud800", "gpus": 2}', 400),
        (b'{"name": "a\\r\\n{}", "gpus": 2}', 422),
        (b'{"name": "\xff", "gpus": 2}', 400),
        (b"[" * 100_000, 400),
        (b'{"name": ' + b'{"a": ' * 50_000, 400),
        (b'{"name": "a", "gpus": 1' + b"0" * 400 + b"}", 400),
        (b'{"name": "a", "gpus": 1' + b"0" * 5000 + b"}", 400),
        (b'{"name": "a", "gpus": -1}', 422),
        (b'{"name": "a", "gpus": 0}', 422),
        (b'{"name": "a", "gpus": 2.5}', 422),
        (b'{"name": "a", "gpus": true}', 422),
        (b'{"name": "a", "gpus": "2"}', 422),
        (b'{"name": "a", "gpus": NaN}', 400),
        (b'{"name": "a", "gpus": 2, "priority": NaN}', 400),
        (b'{"name": "a", "gpus": 2, "priority": Infinity}', 400),
        (b'{"name": "a", "gpus": 2, "expected_s": 1e999}', 400),
        (b'{"name": "a", "gpus": 2, "expected_s": -1}', 422),
        (b'{"name": "a", "gpus": 2, "colour": "red"}', 422),
        (b'{"name": "a", "gpus": 2, "operation": "drain"}', 422),
        (b'{"name": "a", "gpus": 2, "labels": {"a": 1}}', 422),
        (b'{"name": "a", "gpus": 2, "servers": "all"}', 422),
        (b'{"name": "' + b"a" * 300 + b'", "gpus": 2}', 422),
    ],
)
def test_hostile_bodies_are_refused_in_words_and_change_nothing(shared, raw, status):
    reply = shared.ask("POST", "/v1/jobs", raw=raw)
    assert reply.status == status, reply.body
    assert reply.json["error"]["message"]
    assert shared.ask("GET", "/v1/jobs").json["jobs"] == []


@pytest.mark.parametrize(
    "kind",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"],
)
def test_what_a_form_of_another_site_can_send_is_no_change(shared, kind):
    reply = shared.ask("POST", "/v1/jobs", JOB, Content_Type=kind)
    assert (reply.status, reply.code) == (415, "unsupported-media-type")


def test_a_body_too_large_is_refused_by_its_length_and_by_its_bytes(serving):
    with serving(settings=HttpSettings(body_bytes=1000)) as served:
        assert served.ask("POST", "/v1/jobs", raw=b" " * 1001).status == 413
        head = (
            f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.tokens['submit']}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunks = b"".join(b"64\r\n" + b" " * 100 + b"\r\n" for _ in range(20))
        assert status_of(served.send(head.encode() + chunks + b"0\r\n\r\n")) == 413


def test_a_body_that_does_not_come_costs_the_client_its_connection(serving):
    with serving(settings=HttpSettings(body_s=0.3)) as served:
        head = (
            f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.tokens['submit']}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        answer = served.send(head.encode())
        assert status_of(answer) == 408
        assert b"request-timeout" in answer


# Heads


def test_a_head_that_trickles_in_is_cut_off(serving):
    with serving(settings=HttpSettings(header_s=0.3)) as served:
        answer = served.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert status_of(answer) == 408
        assert served.send(b"") == b""  # and who says nothing at all
        deadline = time.monotonic() + PATIENCE_S
        while (reply := served.ask("GET", "/healthz")).status == 408:  # on a busy machine a whole head is late, too
            assert time.monotonic() < deadline
        assert reply.status == 200


def test_a_head_without_an_end_is_cut_off(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\n")
        answer = b""
        try:
            for number in range(2000):
                raw.sendall(f"X-{number}: {'y' * 100}\r\n".encode())
        except OSError:
            pass
        try:
            while part := raw.recv(65536):
                answer += part
        except OSError:
            pass
    assert not answer or status_of(answer) == 431
    assert served.service.doors.refused["head-too-large"] == 1


def test_one_huge_head_is_refused(shared):
    assert status_of(shared.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20_000 + b"\r\n\r\n")) == 431


@pytest.mark.parametrize(
    "head",
    [
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\nhello",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA\x00: b\r\n\r\n",
        b"GET /health\x00z HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_requests_that_can_be_read_in_two_ways_are_refused(shared, head):
    answer = shared.send(head)
    assert status_of(answer) in (400, 401)
    assert len(re.findall(rb"HTTP/1.1 \d", answer)) == 1


def test_a_connection_is_never_upgraded(shared):
    head = (
        f"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {shared.tokens['read']}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", shared.port), timeout=PATIENCE_S) as raw:
        raw.sendall(head.encode())
        assert status_of(raw.recv(65536)) != 101


def test_a_second_token_header_is_refused(shared):
    text = shared.tokens["read"]
    head = f"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {text}\r\nAuthorization: Bearer {text}\r\n"
    assert status_of(shared.send(head.encode() + b"Connection: close\r\n\r\n")) == 400


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../metrics", "/v1/jobs/..", "//v1/status", "/v1//status", "/v1/jobs/%2e%2e/%2e%2e/metrics", "/v1/%00",
        "/v1/jobs/%0d%0aSet-Cookie:x", "/v1/jobs\\..\\x", "/v1/jobs/" + "j" * 2000, "/v1/jobs/%F0%9F%92%A3",
    ],
)  # fmt: skip
def test_paths_with_tricks_lead_nowhere(shared, path):
    assert shared.ask("GET", path).status == 404


def test_methods_that_do_not_belong_there_are_refused(shared):
    for method in ("DELETE", "PATCH"):
        assert shared.ask(method, "/v1/jobs").status == 405
    assert shared.ask("GET", "/v1/drain").status == 405
    assert status_of(shared.send(b"TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")) in (401, 404, 405)


# Browsers


def test_another_sites_page_gets_nothing_and_cors_is_off(shared):
    foreign = shared.ask("GET", "/v1/status", Origin="https://evil.example")
    assert (foreign.status, foreign.code) == (403, "forbidden")
    asked_first = shared.ask("OPTIONS", "/v1/jobs", Origin="https://evil.example", Access_Control_Request_Method="POST")
    assert asked_first.status == 403
    for reply in (foreign, asked_first, shared.ask("GET", "/v1/status")):
        assert not [name for name in reply.headers if name.startswith("access-control")]
        assert "set-cookie" not in reply.headers
    own = shared.ask("GET", "/v1/status", Origin=f"http://127.0.0.1:{shared.port}")
    assert own.status == 200


def test_a_name_that_was_bent_to_this_address_is_refused_where_there_are_no_tokens(serving):
    with serving(tokens=()) as served:
        assert served.ask("GET", "/v1/status").status == 200
        assert served.ask("GET", "/v1/status", Host=f"evil.example:{served.port}").status == 403
        assert served.ask("GET", "/v1/status", Host=f"localhost:{served.port}").status == 200


def test_every_answer_tells_browsers_to_stay_out(shared):
    for reply in (
        shared.ask("GET", "/v1/status"),
        shared.ask("GET", "/v1/x"),
        shared.ask("GET", "/healthz", role=None),
    ):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "server" not in reply.headers
        assert reply.headers["ropewalk-api"] == "1"


# Too much


@pytest.fixture
def standing_clock(monkeypatch):
    """However long requests take, for the gate they come at the same moment."""
    monkeypatch.setattr(gate, "time", SimpleNamespace(monotonic=lambda: 0.0, perf_counter=time.perf_counter))


def test_nobody_fills_the_queue(served, monkeypatch):
    monkeypatch.setattr("ropewalk.serve.steps.lifecycle.MOST_WAITING", 2)
    all_of_it = JOB | {"gpus": 16}
    assert [served.ask("POST", "/v1/jobs", all_of_it).status for _ in range(3)] == [201, 202, 202]
    before = served.ask("GET", "/v1/status").json
    full = served.ask("POST", "/v1/jobs", all_of_it)
    assert (full.status, full.code, full.json["error"]["details"]) == (429, "queue-full", {"waiting": 2})
    assert served.ask("GET", "/v1/status").json == before
    assert served.ask("POST", "/v1/jobs", all_of_it, role="submit").status == 202, "others still may"
    served.ask("POST", "/v1/jobs/j3/cancel")
    assert served.ask("POST", "/v1/jobs", all_of_it).status == 202


@pytest.mark.usefixtures("standing_clock")
def test_who_asks_too_often_is_told_when_to_come_back(serving):
    with serving(settings=HttpSettings(rate=0.5)) as served:
        replies = [served.ask("GET", "/v1/status", role="read") for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 429, 429]
        assert replies[1].code == "too-many-requests"
        assert int(replies[1].headers["retry-after"]) == 2
        assert served.ask("GET", "/v1/status", role="submit").status == 200  # each token for itself


@pytest.mark.usefixtures("standing_clock")
def test_an_address_that_asks_too_often_is_told_so(serving):
    with serving(settings=HttpSettings(rate_per_address=0.5)) as served:
        assert [served.ask("GET", "/healthz", role=None).status for _ in range(3)] == [200, 429, 429]


def test_connections_beyond_the_limit_are_refused(serving):
    with serving(settings=HttpSettings(connections_per_address=2)) as served:
        held = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(2)]
        while served.service.doors.open < 2:
            time.sleep(0.01)
        with suppress(ConnectionError):  # closed before the request came
            assert status_of(served.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")) == 503
        assert served.service.doors.refused["not-ready"] == 1
        for one in held:
            one.close()
        while served.service.doors.of_address:
            time.sleep(0.01)
        assert served.service.doors.open == 0
        assert served.ask("GET", "/healthz").status == 200


def test_streams_beyond_the_limit_are_refused(serving):
    with serving(settings=HttpSettings(streams_per_client=1, streams=2)) as served:
        held = []
        for role in ("read", "submit"):
            one = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE_S)
            one.request("GET", "/v1/events", headers={"Authorization": f"Bearer {served.tokens[role]}"})
            assert one.getresponse().status == 200
            held.append(one)
            again = served.ask("GET", "/v1/events", role=role)
            assert (again.status, again.code) == (429, "too-many-requests")
        assert served.ask("GET", "/v1/events", role="operate").status == 429
        for one in held:
            one.sock.close()
            one.close()
        while served.service.broadcast._of_client:
            time.sleep(0.01)


def test_who_never_reads_the_answer_is_cut_off(serving):
    with serving(settings=HttpSettings(stall_s=0.3), fabric="leaf-spine:256x64x64") as served:
        head = f"GET /v1/plant HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.tokens['read']}\r\n\r\n".encode()
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", served.port))
        raw.sendall(head * 200)
        deadline = time.monotonic() + PATIENCE_S
        while not served.service.doors.refused["stalled"] and time.monotonic() < deadline:
            time.sleep(0.02)
        assert served.service.doors.refused["stalled"] == 1
        raw.close()


# What is written down


def test_names_cannot_write_lines_of_the_log_and_no_secret_is_in_it(served):
    served.ask("POST", "/v1/jobs", {"name": '\u202egpj\u2028{"level": "error"}', "gpus": 2})
    served.ask("POST", "/v1/jobs", {"name": "n\u00e9 \U0001f4a3", "gpus": 2})
    served.ask("GET", "/v1/%0a%7b%22event%22:%22forged%22%7d")
    lines = served.logged()
    text = served.log_path.read_text()
    assert text.isascii()
    assert not any(line["event"] == "forged" for line in lines)
    for token in served.tokens.values():
        assert token.split("_", 2)[2] not in text
    database = b"".join(path.read_bytes() for path in served.log_path.parent.glob("serve.db*"))
    for token in served.tokens.values():
        assert token.split("_", 2)[2].encode() not in database


def test_a_defect_tells_the_client_nothing_and_the_log_everything(served, monkeypatch):
    def broken(after, limit):
        raise RuntimeError("the secret place")

    monkeypatch.setattr(served.service.store, "events", broken)
    reply = served.ask("GET", "/v1/history")
    assert (reply.status, reply.code) == (500, "internal")
    assert b"secret place" not in reply.body
    assert any("secret place" in line.get("exception", "") for line in served.logged())


def test_the_socket_file_is_for_its_group_only(shared):
    assert os.stat(shared.socket_path).st_mode & 0o777 == 0o660


def test_the_socket_asks_for_tokens_unless_it_has_a_role(serving):
    def over(served, headers=()):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(served.socket_path))
            raw.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + b"".join(headers) + b"\r\n")
            found = b""
            while part := raw.recv(65536):
                found += part
            return found

    with serving("a") as served:
        assert status_of(over(served)) == 401
        token = f"Authorization: Bearer {served.tokens['read']}\r\n".encode()
        assert status_of(over(served, [token])) == 200
    with serving("b", settings=HttpSettings(socket_role="read")) as served:
        assert status_of(over(served)) == 200
        assert json.loads(over(served).partition(b"\r\n\r\n")[2])["gpus"]["total"] == 16
