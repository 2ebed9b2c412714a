"""Jobs end with their pods, as an API server lists them."""

import http.server
import json
import threading

import pytest

from ropewalk.errors import InputError
from ropewalk.serve.kubernetes.api_server import ApiServer, ApiServerFailed
from ropewalk.serve.kubernetes.extender import Binding
from ropewalk.serve.kubernetes.pod_watch import PodWatch, Standing, by_gang, over
from ropewalk.serve.kubernetes.pods import Pod
from ropewalk.serve.operation import Submit
from ropewalk.serve.service import open_writer
from ropewalk.serve.store import open_store
from ropewalk.tenancy.plant import plant

PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""


def pod(phase, job="train"):
    labels = {"ropewalk.io/job": job, "ropewalk.io/pods": "2"}
    return {"metadata": {"name": f"{job}-x", "namespace": "ml", "labels": labels}, "status": {"phase": phase}}


@pytest.fixture
def api():
    """A server that speaks the three requests which are made of an API server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        pods, bindings, tokens, status = [], [], [], 201

        def do_GET(self):
            rest = self.path.partition("continue=")[2]
            Handler.tokens.append(self.headers.get("Authorization"))
            at = int(rest or 0)
            more = str(at + 1) if at + 1 < len(Handler.pods) else ""
            self.answer(200, {"items": Handler.pods[at : at + 1], "metadata": {"continue": more}})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            Handler.bindings.append((self.path, body))
            self.answer(Handler.status, {"kind": "Status", "message": "pod is already assigned"})

        def answer(self, status, document):
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    Handler.pods, Handler.bindings, Handler.tokens = [], [], []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Handler.url = f"http://127.0.0.1:{server.server_port}"
    yield Handler
    server.shutdown()
    server.server_close()


def test_an_answer_that_is_nested_without_end_is_no_answer(api):
    deep = []
    for _ in range(200):
        deep = [deep]
    api.pods = [deep]
    with pytest.raises(ApiServerFailed, match="nested too deeply"):
        list(ApiServer(api.url, timeout_s=PATIENCE_S).pods())


def test_a_binding_as_the_api_server_takes_it(api, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    server = ApiServer(api.url, token, timeout_s=PATIENCE_S)
    server.bind(Binding("ml", "train-2", "uid-2", "server3"))
    path, body = api.bindings[0]
    assert path == "/api/v1/namespaces/ml/pods/train-2/binding"
    assert body["kind"] == "Binding"
    assert body["metadata"]["uid"] == "uid-2"
    assert body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "server3"}
    api.status = 409
    with pytest.raises(ApiServerFailed, match="already assigned"):
        server.bind(Binding("ml", "train-2", "uid-2", "server3"))
    api.status = 201
    api.pods = [pod("Running"), pod("Running"), pod("Pending")]
    assert len(list(server.pods())) == 3
    assert api.tokens == ["Bearer secret"] * 3


def test_an_api_server_that_is_not_there_is_said():
    with pytest.raises(ApiServerFailed, match="does not answer"):
        list(ApiServer("http://127.0.0.1:9").pods())


def test_a_token_is_not_sent_in_the_clear(tmp_path):
    with pytest.raises(InputError, match="in the clear"):
        ApiServer("http://10.0.0.1:6443", tmp_path / "token")
    with pytest.raises(InputError, match="is not the address"):
        ApiServer("10.0.0.1:6443")


@pytest.mark.parametrize(
    ("phases", "age", "outcome"),
    [
        (["Running", "Succeeded"], 999, None),
        (["Pending", "Pending"], 999, None),
        (["Succeeded", "Succeeded"], 0, "done"),
        (["Succeeded", "Failed"], 0, None),
        (["Succeeded", "Failed"], 999, "failed"),
        ([], 0, None),
        ([], 999, "lost"),
    ],
)
def test_when_a_job_is_over(phases, age, outcome):
    pods = {"ml/train": [Pod("ml", "p", "u", 8, "train", 2, phase=phase) for phase in phases]}
    found = over([Standing("j1", "ml/train", 0.0)], pods, float(age), 60.0)
    assert found == ({} if outcome is None else {"j1": outcome})


def test_pods_that_cannot_be_read_are_none_of_ours():
    assert set(by_gang([pod("Running"), 3, {"metadata": {}}], "nvidia.com/gpu")) == {"ml/train"}


def test_a_job_ends_with_its_pods(api, tmp_path):
    store = open_store(str(tmp_path / "state.db"))
    writer = open_writer(store, plant("leaf-spine:2x8x8", gpus_per_server=8)).start()
    try:
        writer.submit(Submit("train", 16, labels={"kubernetes": "ml/train"}), actor="kubernetes").result()
        writer.submit(Submit("by-hand", 8, labels={"kubernetes": "ml/train"}), actor="mallory/x").result()
        watch = PodWatch(writer, ApiServer(api.url, timeout_s=PATIENCE_S), "nvidia.com/gpu", print, patience_s=60.0)
        api.pods = [pod("Running"), pod("Succeeded")]
        assert watch.once() == {}
        api.pods = [pod("Succeeded"), pod("Succeeded")]
        assert watch.once() == {"j1": "done"}
        live = writer.read(lambda controller: [job.name for job in controller.state.jobs.values()]).result()
        assert live == ["by-hand"]
    finally:
        writer.close()
        store.close()
