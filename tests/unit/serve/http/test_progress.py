"""How fast jobs train, over HTTP: reports, what is shown of them, metrics."""

import time

BODY = {"step": 40, "steps": 40, "seconds": 20.0}


def test_a_job_reports_and_everybody_may_read_it(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 4, "promised_step_s": 0.4}, role="submit")
    reply = served.ask("POST", "/v1/jobs/j1/progress", BODY, role="submit")
    assert (reply.status, round(reply.json["speed"]["slowdown"], 3)) == (200, 1.25)
    job = served.ask("GET", "/v1/jobs/j1", role="read").json
    assert [(one["step"], one["step_s"]) for one in job["speed"]["history"]] == [(40, 0.5)]
    assert "history" not in served.ask("GET", "/v1/jobs?full=true").json["jobs"][0]["speed"]
    assert served.ask("GET", "/v1/jobs/j1/explain").json["speed"]["recent_step_s"] == 0.5
    text = served.ask("GET", "/metrics", role="read").body.decode()
    assert 'ropewalk_job_step_seconds{job="j1",name="a",what="measured"} 0.5' in text
    assert 'ropewalk_job_step_seconds{job="j1",name="a",what="promised"} 0.4' in text
    assert served.ask("POST", "/v1/jobs/j1/progress", BODY, role="read").status == 403


def test_a_report_makes_the_page_of_a_job_stale_but_not_its_version(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 4})
    assert served.ask("POST", "/v1/jobs/j1/progress", BODY).headers["etag"] == '"1.1"'
    fresh = served.ask("GET", "/v1/jobs/j1", If_None_Match='"1"')
    assert (fresh.status, fresh.headers["etag"]) == (200, '"1.1"')
    assert served.ask("GET", "/v1/jobs/j1", If_None_Match='"1.1"').status == 304
    assert served.ask("POST", "/v1/jobs/j1/end", If_Match='"1.1"').status == 200


def test_reports_that_come_too_often_are_told_when_to_come_again(served):
    now = time.time()
    served.service.writer._clock = lambda: now  # however long the requests take
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 4})
    served.ask("POST", "/v1/jobs/j1/progress", BODY)
    soon = served.ask("POST", "/v1/jobs/j1/progress", BODY | {"step": 80})
    assert (soon.status, soon.code, soon.headers["retry-after"]) == (429, "too-many-requests", "1")
    assert served.ask("POST", "/v1/jobs/j1/progress", BODY).status == 200, "the same report is no second one"


def test_reports_are_there_after_a_restart(serving, tmp_path):
    with serving("a", at=str(tmp_path / "kept.db")) as served:
        served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 4, "promised_step_s": 0.4})
        served.ask("POST", "/v1/jobs/j1/progress", BODY)
        before = served.ask("GET", "/v1/jobs/j1").json
    with serving("b", at=str(tmp_path / "kept.db")) as served:
        assert served.ask("GET", "/v1/jobs/j1").json == before
