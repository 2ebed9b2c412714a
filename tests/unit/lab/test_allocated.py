"""Jobs of a cluster as work of a lab: each keeps to its own GPUs and links."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ropewalk.cli import app
from ropewalk.errors import LabError
from ropewalk.lab.allocated import allocated_jobs, is_allocation

PLANT = ["--fabric", "leaf-spine:4x2x2", "--gpus-per-server", "1"]


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """Two jobs of four GPUs, which share no link."""
    file = tmp_path_factory.mktemp("state") / "state.json"
    for job, before in (("one", []), ("two", ["--state", str(file)])):
        asked = ["cluster", "allocate", *PLANT, "--gpus", "4", "--job", job, "--save", str(file), *before]
        assert CliRunner().invoke(app, asked).exit_code == 0
    return file


def test_jobs_of_a_state_send_over_links_of_their_own(state):
    document = json.loads(state.read_text())
    assert is_allocation(document)
    network, work, said = allocated_jobs(document, "ring", 1_000_000, bandwidth=2.5e6)
    assert "all hosts together send up to" in said
    assert work.what == "ring of 1 MB of 2 jobs at once"
    routes, used = work.routes, []
    for job in document["jobs"]:
        members = set(job["gpus"])
        mine = [pair for pair in range(routes.pairs) if int(routes.pair_src[pair]) in members]
        used.append({int(link) for pair in mine for link in routes.link[slice(*_links(routes, pair))]})
    assert all(used)
    assert not used[0] & used[1]
    assert network.fabric.hosts == 8


def _links(routes, pair):
    return routes.link_start[routes.path_start[pair]], routes.link_start[routes.path_start[pair + 1]]


def test_a_state_without_jobs_is_refused(state):
    document = {**json.loads(state.read_text()), "jobs": []}
    with pytest.raises(LabError, match="no job of the state has two GPUs"):
        allocated_jobs(document, "ring", 1000, bandwidth=2.5e6)


def test_the_answer_of_allocate_is_refused_with_the_file_to_run(tmp_path):
    file = tmp_path / "answer.json"
    file.write_text('{"plant": "leaf-spine:4x2x2", "placed": true}')
    result = CliRunner().invoke(app, ["lab", "run", str(file)])
    assert "use the state file that it writes with --save" in str(result.exception) + result.output
