"""What the service says about itself: OpenAPI, metrics, health, logs."""

import re

import msgspec
import pytest

from ropewalk.serve.endpoints import ENDPOINTS
from ropewalk.serve.http.openapi import description
from ropewalk.serve.http.own_routes import OWN_ROUTES
from ropewalk.serve.http.shapes import ANSWERS, ProblemShape
from ropewalk.serve.kubernetes.routes import handlers as KUBERNETES
from ropewalk.serve.operation import KINDS
from ropewalk.serve.slurm.routes import handlers as SLURM


def test_every_route_is_described_and_every_description_has_a_route(shared):
    document = shared.ask("GET", "/openapi.json", role=None).json
    assert document["openapi"].startswith("3.1")
    routes = {(one.method, one.path) for one in ENDPOINTS}
    for handler in (*OWN_ROUTES, *SLURM, *KUBERNETES):
        for path in handler.paths:
            routes |= {(str(method), path.replace("{job:str}", "{job}")) for method in handler.http_methods}
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(method, path) for method, path in routes if method not in ("HEAD", "OPTIONS")}


def test_every_reference_leads_somewhere_and_everything_has_examples():
    document = description()

    def references(value):
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for one in value.values():
                yield from references(one)
        elif isinstance(value, list):
            for one in value:
                yield from references(one)

    for reference in references(document):
        found = document
        for word in reference.removeprefix("#/").split("/"):
            found = found[word]
    names = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
    assert len(set(names)) == len(names)
    for methods in document["paths"].values():
        for operation in methods.values():
            assert operation["summary"].endswith((".", "?"))
            for status, answer in operation["responses"].items():
                shown = document["components"]["responses"][status] if "$ref" in answer else answer
                assert all("example" in content for content in shown["content"].values())
            if "requestBody" in operation:
                assert all("example" in content for content in operation["requestBody"]["content"].values())


def test_bodies_have_the_entries_of_their_operations():
    schemas = description()["components"]["schemas"]
    for endpoint in ENDPOINTS:
        if endpoint.operation is None or "{job}" not in endpoint.path:
            continue
        kind = KINDS[endpoint.operation]
        body = schemas[f"{kind.__name__}Body"]
        assert set(body["properties"]) == set(kind.__dataclass_fields__) - {"job"}
        assert "job" not in body.get("required", ())


def test_example_bodies_are_accepted():
    from ropewalk.serve.asked import ReceivedRequest

    for endpoint in ENDPOINTS:
        if endpoint.operation is not None:
            job = "j1" if "{job}" in endpoint.path else None
            assert endpoint.operation_of(ReceivedRequest(job, {}, dict(endpoint.body or {})))


def test_real_answers_have_the_shapes_that_are_described(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 16, "labels": {"x": "y"}})
    asked = {
        "post-jobs": served.ask("POST", "/v1/jobs", {"name": "b", "gpus": 2}),
        "get-jobs": served.ask("GET", "/v1/jobs?full=true"),
        "get-jobs-job": served.ask("GET", "/v1/jobs/j2"),
        "get-jobs-job-files": served.ask("GET", "/v1/jobs/j1/files"),
        "post-jobs-job-hold": served.ask("POST", "/v1/jobs/j2/hold", {"note": "later"}),
        "post-jobs-job-release": served.ask("POST", "/v1/jobs/j2/release"),
        "post-jobs-job-bind": served.ask("POST", "/v1/jobs/j2/bind", {"external": "slurm:1"}),
        "post-jobs-job-resize": served.ask("POST", "/v1/jobs/j1/resize", {"gpus": 8}),
        "post-jobs-job-progress": served.ask("POST", "/v1/jobs/j1/progress", {"step": 7, "seconds": 0.5}),
        "post-jobs-job-cancel": served.ask("POST", "/v1/jobs/j2/cancel"),
        "post-jobs-job-end": served.ask("POST", "/v1/jobs/j1/end"),
        "get-history": served.ask("GET", "/v1/history"),
        "get-healthz": served.ask("GET", "/healthz"),
        "get-readyz": served.ask("GET", "/readyz"),
    }
    assert set(asked) == set(ANSWERS)
    for name, reply in asked.items():
        assert reply.status < 300, (name, reply.body)
        msgspec.json.decode(reply.body, type=ANSWERS[name])
    msgspec.json.decode(served.ask("GET", "/v1/jobs/j99").body, type=ProblemShape)


def test_metrics_say_what_the_cluster_does(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 8})
    served.ask("POST", "/v1/jobs", {"name": "b", "gpus": 16})
    served.ask("POST", "/v1/drain", {"parts": ["server:server7"]})
    text = served.ask("GET", "/metrics", role="read").body.decode()
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert samples['ropewalk_jobs{state="running"}'] == "1.0"
    assert samples['ropewalk_jobs{state="pending"}'] == "1.0"
    assert samples['ropewalk_gpus{state="used"}'] == "8.0"
    assert samples['ropewalk_gpus{state="drained"}'] == "2.0"
    assert samples['ropewalk_links{state="reserved"}'] == "8.0"
    assert samples['ropewalk_waiting_jobs{reason="gpu-shortage"}'] == "1.0"
    assert samples['ropewalk_operations_total{kind="submit",result="done"}'] == "2.0"
    assert samples['ropewalk_http_requests_total{method="POST",route="/v1/jobs",status="202"}'] == "1.0"
    assert float(samples["ropewalk_commit_batch_size_count"]) >= 3
    assert samples['ropewalk_parts_out_of_service{kind="drained"}'] == "1.0"
    names = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    assert all(name.startswith("ropewalk_") for name in names)


def test_metrics_need_a_token_unless_they_are_open(serving):
    from ropewalk.serve.http.settings import HttpSettings

    with serving("a") as served:
        assert served.ask("GET", "/metrics", role=None).status == 401
    with serving("b", settings=HttpSettings(metrics_open=True)) as served:
        assert served.ask("GET", "/metrics", role=None).status == 200


def test_health_needs_no_token_and_says_nothing_about_the_cluster(shared):
    assert shared.ask("GET", "/healthz", role=None).json == {"status": "alive"}
    assert shared.ask("GET", "/readyz", role=None).json == {"status": "ready"}


def test_a_service_that_is_ending_is_not_ready(served):
    served.service.closing = True
    reply = served.ask("GET", "/readyz", role=None)
    assert (reply.status, reply.code) == (503, "not-ready")


def test_there_is_a_line_per_request_and_per_operation(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 2}, role="submit")
    served.ask("GET", "/v1/jobs/j9")
    lines = served.logged()
    (operation,) = [line for line in lines if line["event"] == "operation"]
    assert (operation["kind"], operation["result"], operation["job"]) == ("submit", "done", "j1")
    assert operation["by"].startswith("submit/")
    requests = [(line["method"], line["path"], line["status"]) for line in lines if line["event"] == "request"]
    assert requests == [("POST", "/v1/jobs", 201), ("GET", "/v1/jobs/j9", 404)]


@pytest.mark.parametrize("path", ["/healthz", "/v1/status"])
def test_head_is_not_asked_for(shared, path):
    assert shared.ask("HEAD", path).status in (200, 405)
