"""The documents of labs: written whole, read strictly, never mistaken for another process."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from ropewalk.cli import app
from ropewalk.cli.lab_options import scale_named
from ropewalk.errors import LabError
from ropewalk.fabric import Ring
from ropewalk.lab import state as labs
from ropewalk.lab.lifecycle import network_of, opened, routes_in, take_down
from ropewalk.lab.network import LabNetwork, LabSettings
from ropewalk.lab.request import require_carried, routes_by_name, scaled, tables_of
from ropewalk.lab.saved import SavedFabric, saved_paths
from ropewalk.lab.state import Holder, LabState


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(labs.FOLDER, str(tmp_path))
    return tmp_path


def a_state(name="pod", holder=None):
    ring = Ring(4).build()
    name_of_router, routes = routes_by_name(ring, "default")
    return LabState(
        name, "ring:4", holder or Holder.of(os.getpid()), (1, 2, 3, 4), SavedFabric.of(ring), 5000.0, LabSettings(),
        name_of_router, saved_paths(routes), cut=(1,), slowed=((0, 1_000_000),),
    )  # fmt: skip


def test_a_document_reads_back_to_the_same_state():
    labs.write(a_state())
    assert labs.read("pod") == a_state()
    assert labs.names() == ["pod"]
    network = network_of(labs.read("pod"))
    assert network.rate_bits(0) == 20_000_000
    assert tables_of(network.fabric, routes_in(labs.read("pod"), network)).paths == 2  # to the opposite host


def test_a_process_is_never_mistaken_for_another():
    own = Holder.of(os.getpid())
    assert own.alive
    assert not replace(own, started=own.started + 1).alive
    assert not replace(own, boot="another").alive
    assert not replace(own, pid=2**22 + 1).alive


def test_a_damaged_document_is_named_and_can_be_taken_down(folder):
    (folder / "pod.json").write_text('{"format": "ropewalk lab 0"}')
    with pytest.raises(LabError, match="take it down and up again"):
        labs.read("pod")
    assert take_down("pod") == 0
    assert labs.names() == []


def test_a_dead_lab_cannot_be_opened_and_is_forgotten_by_down():
    labs.write(a_state(holder=Holder(1, 1, "long ago")))
    with pytest.raises(LabError, match="lab down --name pod"), opened("pod"):
        pass
    take_down("pod")
    assert labs.names() == []


def test_a_lab_with_the_routes_of_a_run_that_was_killed_is_not_used():
    labs.write(replace(a_state(), lent=True))
    with pytest.raises(LabError, match="take it down and up again"), opened("pod"):
        pass


def test_status_shows_the_other_labs_where_one_is_damaged(folder):
    labs.write(a_state())
    (folder / "bad.json").write_text("{}")
    shown = CliRunner().invoke(app, ["lab", "status"])
    assert shown.exit_code == 0
    assert "lab pod: ring:4, 4 hosts" in shown.output
    assert "lab bad" in shown.output


def test_names_that_are_no_names_and_labs_that_are_not_there_are_refused():
    with pytest.raises(LabError, match="not a valid name"):
        labs.read("../etc")
    with pytest.raises(LabError, match="bring one up"):
        labs.read("nobody")
    with pytest.raises(LabError, match="bring one up"):
        take_down("nobody")


def test_commands_refuse_what_they_cannot_do():
    runner = CliRunner()
    status = runner.invoke(app, ["lab", "status"])
    assert "no lab is up" in status.output
    for arguments, said in (
        (["lab", "fault", "--link", "h0-h1"], "one of --down, --up or --rate"),
        (["lab", "up", "ring:4", "--scale", "much"], "write it like 1:5000"),
        (["lab", "up", "torus:40x40"], "at most 128"),
        (["lab", "up", "ring:4", "--routing", "dmodk"], "needs a tree"),
        (["lab", "down"], "bring one up"),
    ):
        assert said in str(runner.invoke(app, arguments).exception)


def test_a_network_that_is_too_fast_for_the_machine_is_refused_with_a_remedy_that_works():
    with pytest.raises(LabError, match=r"800 Gbps.*: slower links"):
        require_carried(LabNetwork(Ring(4).build()), "slower links")
    with pytest.raises(LabError, match="use --scale") as problem:
        scaled(Ring(4).build(), 1.0)
    remedy = scale_named(str(problem.value).partition("--scale ")[2].partition(",")[0])
    network, capacity = scaled(Ring(4).build(), remedy)
    assert network.scale == remedy
    assert capacity.error is not None


def test_a_file_that_was_cut_is_not_called_a_state_before_anybody_knows_what_it_is(tmp_path):
    cut = tmp_path / "cut.json"
    cut.write_text('{"format": "ropewalk')
    problem = CliRunner().invoke(app, ["lab", "run", str(cut)]).exception
    assert str(problem).startswith(f"file {cut}: line 1")
