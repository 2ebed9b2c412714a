"""What Gloo sends: rings, pairs and trees, and what is refused before anything runs."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from ropewalk.cli import app
from ropewalk.collectives.act import Act
from ropewalk.errors import LabError
from ropewalk.fabric import LeafSpine
from ropewalk.lab.forwarding import every_pair
from ropewalk.lab.gloo import first_paths
from ropewalk.lab.gloo_tasks import gloo_tasks, whole_items
from ropewalk.routing import shortest
from ropewalk.routing.routes import Routes
from ropewalk.sim import simulate

FABRIC = LeafSpine(1, 1, 4, bandwidth=1e6).build()


def seconds(act: Act, size: int = 4_000_000) -> float:
    graph, _ = gloo_tasks(act, [(0, 1, 2, 3)], size)
    return simulate(graph, shortest(FABRIC, *every_pair(FABRIC))).makespan


def test_rings_take_their_rounds_and_a_reduce_scatter_is_a_whole_all_reduce():
    assert seconds(Act.ALL_REDUCE) == pytest.approx(6.0)
    assert seconds(Act.REDUCE_SCATTER) == pytest.approx(6.0)
    assert seconds(Act.ALL_GATHER) == pytest.approx(3.0)
    assert seconds(Act.ALL_TO_ALL) == pytest.approx(3.0)


def test_the_root_of_a_broadcast_sends_to_all_its_children_at_once():
    graph, (tasks,) = gloo_tasks(Act.BROADCAST, [(3, 2, 1, 0, 4)], 100)
    ends = [(int(graph.place[task]), int(graph.peer[task])) for task in tasks]
    assert ends == [(3, 2), (3, 1), (2, 0), (3, 4)]
    assert np.diff(graph.dep_start).tolist() == [0, 0, 1, 0]


def test_buffers_are_cut_evenly_and_groups_run_side_by_side():
    assert whole_items(10, 3) == 3
    graph, groups = gloo_tasks(Act.ALL_GATHER, [(0, 1), (2, 3)], 8)
    assert [len(tasks) for tasks in groups] == [2, 2]
    assert graph.tasks == 4


def test_gloo_takes_the_first_of_several_paths():
    both = Routes(
        FABRIC, np.array([0], np.int32), np.array([1], np.int32), np.array([0, 2]), np.array([0.5, 0.5]),
        np.array([0, 2, 4]), np.array([4, 5, 6, 7], np.int32),
    )  # fmt: skip
    assert first_paths(both).link.tolist() == [4, 5]
    assert first_paths(both).share.tolist() == [1.0]


def test_what_gloo_has_not_is_refused():
    with pytest.raises(LabError, match="Gloo has no reduce here: choose one of allreduce"):
        gloo_tasks(Act.REDUCE, [(0, 1)], 100)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--ranks", "mpi"], "use one of sockets, gloo"),
        (["--ranks", "gloo", "--collective", "ring"], "Gloo chooses the algorithm itself"),
        (["--ranks", "gloo", "--fault", "h0-leaf0 down at 1s"], "--fault would have no effect"),
    ],
)
def test_options_that_gloo_does_not_know_are_refused_before_anything_is_built(more, said, monkeypatch):
    monkeypatch.setattr("ropewalk.execute.torch_extra.require_torch", lambda: None)
    result = CliRunner().invoke(app, ["lab", "run", "leaf-spine:2x2x2", *more])
    assert said in str(result.exception) + result.output


def test_without_pytorch_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["lab", "run", "leaf-spine:2x2x2", "--ranks", "gloo"])
    assert 'pip install "ropewalk[torch]"' in str(result.exception) + result.output
