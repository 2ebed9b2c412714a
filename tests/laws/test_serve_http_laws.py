"""Whatever is sent to a service, it answers in words or closes the connection, fails never, and goes on."""

import json
import socket
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import PATIENCE_S, running

from ropewalk.serve.http.rates import Rates
from ropewalk.serve.http.settings import HttpSettings

LIMITS = HttpSettings(rate=1e9, rate_per_address=1e9)
HASTY = replace(LIMITS, header_s=0.2, body_s=0.2)
"""For who sends something that never becomes a request."""
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
"""One service for all examples; how long they take says how busy the machine is."""
PATHS = ("/v1/jobs", "/v1/jobs/j1/end", "/v1/jobs/j1/resize", "/v1/drain", "/v1/policy", "/v1/what-if", "/v1/failures")
NAMES = ("name", "gpus", "parts", "job", "outcome", "policy", "servers", "labels", "note", "priority", "expected_s")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)
BODIES = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), VALUES, max_size=6)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with running(tmp_path_factory.mktemp("laws"), settings=LIMITS) as found:
        yield found


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    with running(tmp_path_factory.mktemp("hasty"), settings=HASTY) as found:
        yield found


def check(served):
    """It still answers, and nothing is in two jobs."""
    deadline = time.monotonic() + PATIENCE_S
    while (reply := served.ask("GET", "/readyz")).status == 408:  # on a busy machine even this is too slow for some
        assert time.monotonic() < deadline
    assert reply.status == 200
    served.service.writer.read(lambda controller: controller.state.occupancy.check()).result(PATIENCE_S)


@given(path=st.sampled_from(PATHS), body=BODIES)
@settings(max_examples=60, suppress_health_check=SHARED)
def test_any_json_is_done_or_refused_in_words(served, path, body):
    method = "PUT" if path == "/v1/policy" else "POST"
    reply = served.ask(method, path, raw=json.dumps(body).encode())
    assert reply.status < 500, reply.body
    if reply.status >= 400:
        error = reply.json["error"]
        assert error["code"]
        assert error["message"]
    check(served)


@given(st.binary(min_size=1, max_size=300))
@settings(max_examples=25, suppress_health_check=SHARED)
def test_any_bytes_are_refused_or_cut_off(hasty, data):
    answer = b""
    with suppress(ConnectionError):
        answer = hasty.send(data)
    assert not answer or 400 <= int(answer[9:12]) < 500
    check(hasty)


@given(path=st.text(st.characters(exclude_characters="\r\n \x00", max_codepoint=255), max_size=60))
@settings(max_examples=40, suppress_health_check=SHARED)
def test_any_path_leads_somewhere_or_nowhere(served, path):
    head = (
        f"GET /{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.tokens['read']}\r\nConnection: close\r\n\r\n"
    )
    answer = b""
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S) as raw:
        raw.sendall(head.encode("latin-1"))
        answer = raw.recv(65536)
    assert not answer or int(answer[9:12]) < 500


@given(st.floats(0.1, 100), st.floats(1, 50), st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 2)), max_size=80))
def test_nobody_gets_more_than_the_burst_and_the_rate(per_second, burst, asked):
    rates = Rates(per_second, burst)
    now, allowed = 0.0, {"a": 0, "b": 0}
    for key, pause in asked:
        now += pause
        wait = rates.wait_s(key, now)
        if wait == 0.0:
            allowed[key] += 1
        else:
            assert rates.wait_s(key, now + wait * 1.0001) == 0.0
            allowed[key] += 1
            now += wait * 1.0001
        assert allowed[key] <= burst + per_second * now + 1e-6
