"""A controller in a file: what is damaged or contradicts itself is refused, and the file stays as it was."""

import json

import pytest

from ropewalk.errors import ClusterError
from ropewalk.serve.state_file import StateFile
from ropewalk.tenancy.plant import plant

SMALL = plant("leaf-spine:2x4x4", gpus_per_server=2)


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "live.json"
    for gpus in (4, 2, 8):
        StateFile(made, lambda: SMALL, clock=lambda: 10.0).ask("POST", "/v1/jobs", {"name": "a", "gpus": gpus})
    StateFile(made, clock=lambda: 11.0).ask("POST", "/v1/drain", {"parts": ["spine:spine0"], "note": ""})
    return made


def in_two_places(document):
    document["controller"]["jobs"][0]["allocation"]["gpus"] = [4, 5, 6, 7]


def links_on_one_leaf(document):
    document["controller"]["jobs"][0]["allocation"]["links"] = [[0, 1]]


def at(*keys, to):
    def change(document):
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        at("jobs", to=[]),
        at("jobs", 0, "gpus", to=[4, 5, 6, 7]),
        at("drained", to={"leafs": [], "spines": [], "servers": [], "links": []}),
        at("gpus", to=16),
        at("plant", to="other"),
        in_two_places,
        links_on_one_leaf,
        at("controller", "events", 0, "kind", to=7),
        at("controller", "events", 0, "seq", to=0.5),
        at("controller", "events", 0, to=[]),
        at("controller", "jobs", 0, "gpus", to="four"),
        at("controller", "drained", to=["spine:spine9"]),
        at("controller", to=[]),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_and_left_alone(path, change):
    document = json.loads(path.read_text())
    del document["checksum"]  # somebody has edited it
    path.write_text(json.dumps(document))
    assert StateFile(path).ask("GET", "/v1/status").status == 200
    change(document)
    path.write_text(json.dumps(document))
    before = path.read_bytes()
    for method, where in (("GET", "/v1/status"), ("POST", "/v1/jobs")):
        with pytest.raises(ClusterError):
            StateFile(path).ask(method, where, {"name": "b", "gpus": 1})
    assert path.read_bytes() == before
