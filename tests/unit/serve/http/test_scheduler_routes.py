"""What Slurm's plugin, its scripts and kube-scheduler ask, over HTTP."""

import json
from pathlib import Path

import pytest
from pretend_slurm import PretendSlurm
from served import PATIENCE_S

from ropewalk.serve.http.scheduler_routes import SCHEDULER_ROUTES
from ropewalk.serve.kubernetes.routes import handlers as kubernetes_handlers
from ropewalk.serve.slurm import routes
from ropewalk.serve.slurm.bridge import Bridge, SlurmSettings
from ropewalk.serve.slurm.commands import SlurmCommands
from ropewalk.serve.slurm.routes import handlers as slurm_handlers
from ropewalk.serve.slurm.seen import Patience

FORM = "application/vnd.ropewalk.form"
PATIENT = Patience(PATIENCE_S, PATIENCE_S)
RECORDED = Path(__file__).parents[3] / "data" / "kubernetes" / "extender-v1.json"


class Slurm:
    """A service with a bridge to a pretend Slurm."""

    def __init__(self, serving):
        self.pretend = None
        self.bridge = None
        self._serving = serving

    def beside(self, writer):
        names = writer.read(lambda controller: controller.state.plant.server_names).result()
        self.pretend = PretendSlurm(names)
        self.bridge = Bridge(writer, SlurmSettings(("batch",), 0.2, PATIENT, SlurmCommands(run=self.pretend.run)))
        return [*slurm_handlers, *kubernetes_handlers], {"slurm": self.bridge.start()}

    def __enter__(self):
        self._running = self._serving(beside=self.beside)
        self.service = self._running.__enter__()
        return self

    def __exit__(self, *problem):
        self.bridge.stop()
        return self._running.__exit__(*problem)

    def form(self, path, text, role="submit"):
        return self.service.ask("POST", path, raw=text.encode(), role=role, Content_Type=FORM)

    def lines(self, path, text):
        reply = self.form(path, text)
        assert reply.status == 200, reply.body
        return dict(line.split(" ", 1) for line in reply.body.decode().splitlines())


@pytest.fixture
def slurm(serving, monkeypatch):
    monkeypatch.setattr(routes, "LONGEST_WAIT_S", PATIENCE_S)
    with Slurm(serving) as found:
        yield found


def test_a_job_hears_its_nodes_and_the_next_that_it_is_held(slurm):
    first = slurm.lines("/v1/slurm/submit", "name=train&user=ada&nodes=8&partition=batch")
    assert first["decision"] == "start"
    assert first["count"] == "8"
    second = slurm.lines("/v1/slurm/submit", "name=next&user=ada&nodes=2&partition=batch")
    assert second["decision"] == "hold"
    assert "GPUs are requested" in second["say"]
    assert slurm.lines("/v1/slurm/submit", "name=x&user=ada&nodes=99&partition=batch")["decision"] == "refuse"
    assert slurm.lines("/v1/slurm/submit", "name=x&user=ada&nodes=1&partition=debug")["decision"] == "pass"


def test_whatever_a_user_calls_a_job_it_stays_on_its_line(slurm):
    name = "%22%0Adecision%20refuse%0A%00%FF%C3%28%24%28reboot%29"
    answer = slurm.lines("/v1/slurm/submit", f"name={name}&user=ada&nodes=1&partition=batch")
    assert answer["decision"] == "start"


def test_a_start_waits_for_the_round_that_finds_the_job(slurm):
    answer = slurm.lines("/v1/slurm/submit", "name=train&user=ada&nodes=2&partition=batch")
    nodes = tuple(f"server{number}" for number in range(2))
    job = slurm.pretend.submit(2, comment=answer["comment"], required=nodes)
    slurm.pretend.schedule()
    started = slurm.lines("/v1/slurm/started", f"job={job.id}&wait={PATIENCE_S:.0f}")
    assert started == {"job": "j1", "guarantee": "contention-free", "rules": "none"}
    assert slurm.lines("/v1/slurm/started", "job=999&wait=1")["job"] == "none"
    slurm.pretend.finish(job)
    assert slurm.lines("/v1/slurm/ended", f"job={job.id}") == {"noted": "yes"}
    assert slurm.lines("/v1/slurm/alive", "") == {"alive": "yes"}
    assert slurm.bridge.wait_for_round(PATIENCE_S)
    status = slurm.service.ask("GET", "/v1/slurm", role="read").json
    assert status["reachable"]
    assert status["steps"]["attach"] == 1


def test_running_jobs_are_imported_once(slurm):
    running = {"id": 12, "name": "old", "user": "ada", "nodes": ["server1", "server2"], "limit_s": 60}
    taken = {"id": 13, "name": "twice", "user": "ada", "nodes": ["server2"], "limit_s": None}
    strange = {"id": 14, "name": "far", "user": "ada", "nodes": ["elsewhere"], "limit_s": None}
    slurm.bridge.stop()
    answer = slurm.service.ask("POST", "/v1/slurm/import", {"jobs": [running, taken, strange]}).json
    assert [one["external"] for one in answer["adopted"]] == ["slurm:12"]
    assert [one["external"] for one in answer["left"]] == ["slurm:13", "slurm:14"]
    again = slurm.service.ask("POST", "/v1/slurm/import", {"jobs": [running]}).json
    assert again["known"] == ["slurm:12"]


@pytest.mark.parametrize(
    ("path", "text", "status"),
    [
        ("/v1/slurm/submit", "name=a&name=b", 400),
        ("/v1/slurm/submit", "no form at all", 400),
        ("/v1/slurm/submit", "&".join(f"k{number}=1" for number in range(100)), 400),
        ("/v1/slurm/started", "job=1;reboot", 400),
        ("/v1/slurm/started", "wait=5", 400),
        ("/v1/slurm/ended", "job=-1", 400),
    ],
)
def test_forms_that_make_no_sense_are_refused(slurm, path, text, status):
    assert slurm.form(path, text).status == status


@pytest.mark.parametrize(
    "document",
    [{}, {"jobs": 3}, {"jobs": [{}]}, {"jobs": [{"id": "x", "name": "", "user": "", "nodes": [], "limit_s": 1}]}],
)
def test_imports_that_make_no_sense_are_refused(slurm, document):
    assert slurm.service.ask("POST", "/v1/slurm/import", document).status == 422


def test_everybody_needs_the_role_that_the_description_names(slurm):
    for route in SCHEDULER_ROUTES:
        lower = {"read": None, "submit": "read", "operate": "submit"}[route.role]
        method = route.method.upper()
        reply = slurm.service.ask(method, route.path, role=lower)
        assert reply.status == (401 if lower is None else 403), route.path


def test_without_slurm_its_routes_say_so(serving):
    with serving(beside=lambda writer: (slurm_handlers, {})) as service:
        reply = service.ask("POST", "/v1/slurm/alive", raw=b"", Content_Type=FORM)
        assert reply.status == 503
        assert "--slurm" in reply.json["error"]["remedy"]


def test_kube_scheduler_is_answered_over_http(slurm):
    recorded = json.loads(RECORDED.read_text())
    pods = recorded["filter"][0]
    pods["Pod"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "2"
    reply = slurm.service.ask("POST", "/v1/kubernetes/filter", pods, role="submit")
    assert reply.status == 200
    assert len(reply.json["NodeNames"]) == 4
    reply = slurm.service.ask("POST", "/v1/kubernetes/prioritize", pods, role="submit")
    assert max(one["Score"] for one in reply.json) == 10
    reply = slurm.service.ask("POST", "/v1/kubernetes/bind", recorded["bind"], role="submit")
    assert "--kubernetes-api" in reply.json["Error"]


def test_metrics_say_what_the_bridge_did(slurm):
    slurm.service.service.beside = {"slurm": slurm.bridge.metrics}
    assert slurm.bridge.wait_for_round(PATIENCE_S)
    text = slurm.service.ask("GET", "/metrics", role="read").body.decode()
    assert 'ropewalk_slurm{what="reachable"} 1.0' in text
