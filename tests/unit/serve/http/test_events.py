"""Events as a stream: in order, with nothing missing, whoever comes back when."""

import http.client
import json
import socket
import time

from served import PATIENCE_S

from ropewalk.serve.http.settings import HttpSettings


class Stream:
    """A client of /v1/events that reads event by event."""

    def __init__(self, served, after=None, query=""):
        self.connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE_S)
        headers = {"Authorization": f"Bearer {served.tokens['read']}"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        self.connection.request("GET", f"/v1/events{query}", headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.headers["content-type"].startswith("text/event-stream")

    def block(self):
        """One block of lines as a dictionary; comments under the empty name."""
        found = {}
        while (line := self.answer.readline().decode().rstrip("\n")) != "":
            name, _, value = line.partition(": " if not line.startswith(":") else ":")
            found[name] = value
        return found

    def events(self, count):
        found = []
        while len(found) < count:
            block = self.block()
            if "data" in block:
                found.append(json.loads(block["data"]) | {"event": block["event"], "id": block.get("id")})
        return found

    def close(self):
        self.connection.sock.close()
        self.connection.close()


def submit(served, count, gpus=2):
    for _ in range(count):
        served.ask("POST", "/v1/jobs", {"name": "a", "gpus": gpus})


def test_a_stream_begins_with_where_it_is_and_goes_on_with_what_happens(served):
    submit(served, 1)
    history = served.ask("GET", "/v1/history").json["events"]
    stream = Stream(served)
    assert stream.block()["id"] == str(history[-1]["seq"])
    submit(served, 1)
    after = served.ask("GET", f"/v1/history?after={history[-1]['seq']}").json["events"]
    found = stream.events(len(after))
    assert [one["seq"] for one in found] == [one["seq"] for one in after]
    assert all(one["event"] == one["kind"] and one["id"] == str(one["seq"]) for one in found)
    stream.close()


def test_who_comes_back_misses_nothing_and_sees_nothing_twice(served):
    submit(served, 5)
    everything = [one["seq"] for one in served.ask("GET", "/v1/history").json["events"]]
    for after in (0, everything[2], everything[-1] - 1):
        stream = Stream(served, after=after)
        wanted = [seq for seq in everything if seq > after]
        assert [one["seq"] for one in stream.events(len(wanted))] == wanted
        submit(served, 1)
        (more,) = stream.events(1)
        assert more["seq"] == everything[-1] + 1
        everything = [one["seq"] for one in served.ask("GET", "/v1/history?limit=1000").json["events"]]
        stream.close()
    by_query = Stream(served, query="?after=0")
    assert by_query.events(1)[0]["seq"] == everything[0]
    by_query.close()


def test_a_quiet_stream_has_heartbeats(serving):
    with serving(settings=HttpSettings(heartbeat_s=0.05)) as served:
        stream = Stream(served)
        stream.block()
        assert stream.block() == {"": " heartbeat"}
        stream.close()


def test_a_client_that_reads_too_slowly_is_told_so_and_resumes(serving):
    with serving(settings=HttpSettings(stream_events=3, streams=1, heartbeat_s=1e6)) as served:
        stream = Stream(served)
        stream.block()
        broadcast = served.service.broadcast
        while not any(bell._waiters for bell in broadcast._waiting):  # it has nothing to catch up with
            time.sleep(0.01)
        wake = broadcast._wake
        broadcast._wake = lambda: None  # the client hears nothing for a while
        broadcast._told = False
        submit(served, 6)
        broadcast._wake = wake
        broadcast._told = False
        submit(served, 1)
        last = None
        while last is None or last["event"] != "cut-off":
            (last,) = stream.events(1)
        assert last["remedy"]
        while served.service.broadcast._of_client:
            time.sleep(0.01)
        resumed = Stream(served, after=last["resume_after"])
        newest = served.ask("GET", "/v1/history?limit=1000").json["events"][-1]["seq"]
        found = resumed.events(newest - last["resume_after"])
        assert [one["seq"] for one in found] == list(range(last["resume_after"] + 1, newest + 1))
        resumed.close()


def test_the_end_of_the_service_is_the_last_event(serving):
    with serving() as served:
        stream = Stream(served)
        stream.block()
    (last,) = stream.events(1)
    assert (last["event"], "shutting down" in last["reason"]) == ("closing", True)


def test_nonsense_instead_of_a_number_is_refused(shared):
    assert shared.ask("GET", "/v1/events", Last_Event_ID="yesterday").status == 400
    assert shared.ask("GET", "/v1/events?after=-1").status == 422
    assert shared.ask("GET", "/v1/events?since=1").status == 422


def test_history_comes_in_pages(served):
    submit(served, 3)
    page = served.ask("GET", "/v1/history?limit=2").json
    assert [one["seq"] for one in page["events"]] == [1, 2]
    assert page["next"] == 2
    rest = served.ask("GET", f"/v1/history?after={page['next']}&limit=1000").json
    assert rest["next"] is None
    assert rest["events"][0]["seq"] == 3


def test_a_client_that_vanishes_leaves_nothing(served):
    with socket.create_connection(("127.0.0.1", served.port)) as raw:
        raw.sendall(
            f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.tokens['read']}\r\n\r\n".encode()
        )
        raw.recv(100)
    deadline = time.monotonic() + PATIENCE_S
    while served.service.broadcast._waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not served.service.broadcast._waiting
    assert not served.service.broadcast._of_client
