"""The extender against requests in the JSON that kube-scheduler's extender v1 API documents."""

import asyncio
import copy
import json
from pathlib import Path

import pytest

from ropewalk.serve.kubernetes.api_server import ApiServerFailed
from ropewalk.serve.kubernetes.extend import Extender
from ropewalk.serve.operation import End, Submit
from ropewalk.serve.service import open_writer
from ropewalk.serve.store import open_store
from ropewalk.tenancy.plant import plant

RECORDED = json.loads((Path(__file__).parents[3] / "data" / "kubernetes" / "extender-v1.json").read_text())
FILTER_FIELDS = {"Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"}


class Bound:
    """An API server that notes what was bound, or refuses."""

    def __init__(self, refuses=None):
        self.pods, self._refuses = [], refuses

    def bind(self, binding):
        if self._refuses:
            raise ApiServerFailed(self._refuses)
        self.pods.append((binding.namespace, binding.name, binding.node))


@pytest.fixture
def writer(tmp_path):
    store = open_store(str(tmp_path / "state.db"))
    writer = open_writer(store, plant("leaf-spine:2x32x32", gpus_per_server=8)).start()
    yield writer
    writer.close()
    store.close()


def asked(writer, *questions, api_server=None):
    """Answers of one extender to several questions, in their order."""

    async def all_of_them():
        extender = Extender(writer, api_server=api_server)
        return [await getattr(extender, verb)(document) for verb, document in questions]

    return asyncio.run(all_of_them())


def live(writer):
    return writer.read(lambda controller: list(controller.state.jobs.values())).result()


def test_the_first_pod_reserves_servers_for_all_of_its_job(writer):
    results = asked(writer, *(("filter", request) for request in RECORDED["filter"]))
    assert all(result.keys() == FILTER_FIELDS for result in results)
    assert len({tuple(result["NodeNames"]) for result in results}) == 1
    assert len(results[0]["NodeNames"]) == 4
    assert results[0]["FailedAndUnresolvableNodes"].keys() == set(RECORDED["filter"][0]["NodeNames"]) - set(
        results[0]["NodeNames"]
    )
    (job,) = live(writer)
    assert (job.name, job.user, job.gpus, job.state) == ("train", "ml", 32, "running")


def test_nodes_in_full_come_back_in_full(writer):
    (result,) = asked(writer, ("filter", RECORDED["filter_with_nodes"]))
    assert result["NodeNames"] is None
    assert all("capacity" in node["status"] for node in result["Nodes"]["items"])
    assert len(result["Nodes"]["items"]) == 4


def test_a_pod_goes_to_the_server_of_its_rank(writer):
    filtered = asked(writer, ("filter", RECORDED["filter"][0]))[0]["NodeNames"]
    for index, request in enumerate(RECORDED["filter"]):
        request = request | {"NodeNames": filtered}
        (priorities,) = asked(writer, ("prioritize", request))
        assert [one["Host"] for one in priorities] == filtered
        assert {one["Host"]: one["Score"] for one in priorities}[filtered[index]] == 10
        assert sum(one["Score"] for one in priorities) == 10


def test_a_job_that_must_wait_says_why_on_every_node(writer):
    big = copy.deepcopy(RECORDED["filter"][0])
    big["Pod"]["metadata"]["labels"] |= {"ropewalk.io/job": "big", "ropewalk.io/pods": "8"}
    first, second, again = asked(writer, ("filter", RECORDED["filter"][0]), ("filter", big), ("filter", big))
    assert first["NodeNames"]
    for result in (second, again):
        assert result["NodeNames"] == []
        assert len(result["FailedAndUnresolvableNodes"]) == 8
        assert "waits: 64 GPUs are requested" in result["FailedAndUnresolvableNodes"]["server0"]
    assert len(live(writer)) == 2


def test_an_impossible_job_is_an_error_that_names_the_remedy(writer):
    huge = copy.deepcopy(RECORDED["filter"][0])
    huge["Pod"]["metadata"]["labels"]["ropewalk.io/pods"] = "999"
    (result,) = asked(writer, ("filter", huge))
    assert "can never be allocated" in result["Error"]
    assert not live(writer)


def test_a_pod_alone_is_a_job_and_one_without_gpus_is_none(writer):
    single, without = asked(writer, ("filter", RECORDED["single"]), ("filter", RECORDED["without_gpus"]))
    assert len(single["NodeNames"]) == 1
    assert without["NodeNames"] == RECORDED["without_gpus"]["NodeNames"]
    assert [job.name for job in live(writer)] == ["pod:notebook"]


def test_pods_that_come_at_the_same_time_submit_their_job_once(writer):
    async def together():
        extender = Extender(writer)
        return await asyncio.gather(*(extender.filter(request) for request in RECORDED["filter"] * 5))

    assert len({tuple(result["NodeNames"]) for result in asyncio.run(together())}) == 1
    assert len(live(writer)) == 1


def test_keys_are_read_in_any_case_as_go_does(writer):
    request = {key.lower(): value for key, value in RECORDED["filter"][0].items()}
    assert asked(writer, ("filter", request))[0]["Error"] == ""


def test_a_pod_is_bound_to_a_node_of_its_job_and_to_no_other(writer):
    server = Bound()
    questions = [("filter", request) for request in RECORDED["filter"]]
    good, bad = RECORDED["bind"], RECORDED["bind"] | {"Node": "server7"}
    results = asked(writer, *questions, ("bind", good), ("bind", bad), api_server=server)
    assert results[-2] == {"Error": ""}
    assert "may not run on server7" in results[-1]["Error"]
    assert server.pods == [("ml", "train-2", "server2")]
    assert live(writer)[0].external == "kubernetes:ml/train"


def test_a_binding_that_cannot_be_made_is_said(writer):
    results = asked(writer, ("bind", RECORDED["bind"]))
    assert "leave bindVerb out" in results[0]["Error"]
    results = asked(writer, ("bind", RECORDED["bind"]), api_server=Bound("the API server answers 409"))
    assert "409" in results[0]["Error"]


def test_after_a_job_has_ended_the_same_name_is_a_new_one(writer):
    asked(writer, ("filter", RECORDED["filter"][0]))
    writer.submit(End("j1")).result()
    asked(writer, ("filter", RECORDED["filter"][0]))
    assert [job.id for job in live(writer)] == ["j2"]


def test_a_job_that_somebody_labels_as_one_of_kubernetes_is_none(writer):
    writer.submit(Submit("trap", 8, labels={"kubernetes": "ml/train"}), actor="mallory/x").result()
    (result,) = asked(writer, ("filter", RECORDED["filter"][0]))
    assert len(result["NodeNames"]) == 4
    assert [(job.name, job.owner) for job in live(writer)] == [("trap", "mallory/x"), ("train", "kubernetes")]


@pytest.mark.parametrize(
    "change",
    [
        lambda request: request.update(Pod=None),
        lambda request: request.update(Pod=[1]),
        lambda request: request.update(NodeNames="server0"),
        lambda request: request.update(NodeNames=None),
        lambda request: request["Pod"].update(metadata=3),
        lambda request: request["Pod"]["metadata"].update(name="../../etc"),
        lambda request: request["Pod"]["metadata"]["labels"].update({"ropewalk.io/pods": "many"}),
        lambda request: request["Pod"]["metadata"]["labels"].update({"ropewalk.io/pods": "0"}),
        lambda request: request["Pod"]["metadata"]["labels"].update({"ropewalk.io/job": "a\nb"}),
        lambda request: request["Pod"]["spec"].update(containers={}),
        lambda request: request["Pod"]["spec"]["containers"][0]["resources"]["limits"].update(
            {"nvidia.com/gpu": "half"}
        ),
    ],
)
def test_requests_that_make_no_sense_are_answered_with_an_error(writer, change):
    request = copy.deepcopy(RECORDED["filter"][0])
    change(request)
    (result,) = asked(writer, ("filter", request))
    assert result["Error"].startswith("ropewalk: ")
    assert not live(writer)
