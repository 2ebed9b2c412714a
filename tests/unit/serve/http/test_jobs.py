"""Jobs over HTTP: from submission to their end, with versions, keys and pages."""

import http.client

import pytest
from served import PATIENCE_S


def test_a_job_starts_and_ends_and_the_next_one_takes_its_place(served):
    first = served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 16})
    assert (first.status, first.json["state"], first.headers["etag"]) == (201, "running", '"1"')
    second = served.ask("POST", "/v1/jobs", {"name": "b", "gpus": 4})
    assert (second.status, second.json["state"], second.json["reason"]["code"]) == (202, "pending", "gpu-shortage")
    ended = served.ask("POST", "/v1/jobs/j1/end")
    assert (ended.status, ended.json["state"], ended.json["outcome"]) == (200, "ended", "done")
    assert served.ask("GET", "/v1/jobs/j2").json["state"] == "running"
    again = served.ask("POST", "/v1/jobs/j1/end")
    assert (again.status, again.json["version"]) == (200, ended.json["version"])


def test_a_job_that_ended_long_ago_can_still_be_looked_at(served, monkeypatch):
    monkeypatch.setattr("ropewalk.serve.state.KEPT_ENDED", 1)
    for _ in range(3):
        job = served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 4}).json["id"]
        served.ask("POST", f"/v1/jobs/{job}/end")
    assert [one["id"] for one in served.ask("GET", "/v1/jobs?state=ended").json["jobs"]] == ["j3"]
    first, last = (served.ask("GET", f"/v1/jobs/{job}") for job in ("j1", "j3"))
    assert (first.status, first.headers["etag"], first.json["outcome"]) == (200, last.headers["etag"], "done")
    assert first.json["allocation"] == last.json["allocation"]
    assert served.ask("GET", "/v1/jobs/j4").code == "not-found"
    assert served.ask("GET", "/v1/jobs/%27").code == "not-found"


def test_what_can_never_start_is_refused_and_not_queued(served):
    reply = served.ask("POST", "/v1/jobs", {"name": "huge", "gpus": 17})
    assert (reply.status, reply.code) == (422, "impossible")
    assert served.ask("GET", "/v1/jobs").json == {"jobs": [], "next": None}


def test_the_same_key_changes_nothing_twice_and_another_request_under_it_is_a_conflict(served):
    body = {"name": "a", "gpus": 2}
    first = served.ask("POST", "/v1/jobs", body, Idempotency_Key="k1")
    again = served.ask("POST", "/v1/jobs", body, Idempotency_Key="k1")
    assert (again.status, again.body) == (first.status, first.body)
    assert len(served.ask("GET", "/v1/jobs").json["jobs"]) == 1
    other = served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 4}, Idempotency_Key="k1")
    assert (other.status, other.code) == (409, "idempotency-conflict")


def test_a_version_that_was_not_seen_last_is_refused(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 2})
    stale = served.ask("POST", "/v1/jobs/j1/end", If_Match='"7"')
    assert (stale.status, stale.code) == (412, "version-conflict")
    assert served.ask("POST", "/v1/jobs/j1/end", If_Match="soon").status == 400
    assert served.ask("POST", "/v1/jobs/j1/end", If_Match='"1"').status == 200


def test_a_job_that_has_not_changed_is_not_sent_again(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 2})
    same = served.ask("GET", "/v1/jobs/j1", If_None_Match='"1"')
    assert (same.status, same.body) == (304, b"")
    assert served.ask("GET", "/v1/jobs/j1", If_None_Match='"9"').status == 200


def test_lists_come_in_pages(served):
    for number in range(5):
        served.ask("POST", "/v1/jobs", {"name": f"n{number}", "gpus": 2, "user": "ada" if number % 2 else "bob"})
    page = served.ask("GET", "/v1/jobs?limit=2").json
    assert ([one["id"] for one in page["jobs"]], page["next"]) == (["j1", "j2"], "j2")
    rest = served.ask("GET", f"/v1/jobs?limit=3&after={page['next']}").json
    assert ([one["id"] for one in rest["jobs"]], rest["next"]) == (["j3", "j4", "j5"], None)
    assert [one["id"] for one in served.ask("GET", "/v1/jobs?user=ada").json["jobs"]] == ["j2", "j4"]
    assert [one["id"] for one in served.ask("GET", "/v1/jobs?name=n4").json["jobs"]] == ["j5"]
    served.ask("POST", "/v1/jobs/j1/end")
    assert [one["id"] for one in served.ask("GET", "/v1/jobs?state=ended").json["jobs"]] == ["j1"]
    assert "servers" not in page["jobs"][0]["allocation"]
    assert "servers" in served.ask("GET", "/v1/jobs?full=true").json["jobs"][0]["allocation"]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=x", "limit=9999999999999999999", "after=k", "state=gone", "full=yes", "colour=1"],
)
def test_parameters_that_mean_nothing_are_refused(shared, query):
    assert (shared.ask("GET", f"/v1/jobs?{query}").status) == 422


def test_a_parameter_twice_is_refused(shared):
    assert shared.ask("GET", "/v1/jobs?limit=1&limit=2").status == 400


def test_files_of_a_running_job_are_its_launchers(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 4})
    files = served.ask("GET", "/v1/jobs/j1/files").json["files"]
    assert files["nodes.txt"] == "server0\nserver1\n"
    served.ask("POST", "/v1/jobs/j1/end")
    assert served.ask("GET", "/v1/jobs/j1/files").code == "wrong-state"


def test_the_cluster_says_who_holds_what(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 8})
    occupancy = served.ask("GET", "/v1/occupancy").json
    assert sum(len(seats) for server in occupancy["servers"] for seats in server["jobs"].values()) == 8
    assert len(occupancy["links"]) == 8
    assert served.ask("GET", "/v1/status").json["gpus"] == {"total": 16, "used": 8, "free": 8}
    assert served.ask("GET", "/v1/plant").json["servers"][0] == {"name": "server0", "leaf": "leaf0"}
    assert served.ask("GET", "/v1/jobs/j1/explain").json["allocation"]["stage"] == "clos"
    assert served.ask("GET", "/v1/jobs/j1/rules").json == {"id": "j1", "driver": None, "rules": []}


def test_one_connection_serves_many_requests(served):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {served.tokens['read']}"}
    for _ in range(50):
        connection.request("GET", "/v1/status", headers=headers)
        assert connection.getresponse().read()
    connection.close()
    assert served.service.doors.open <= 1
