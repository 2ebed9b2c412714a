"""Pipelines that the pipeline planner proposes to the search over strategies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.hardware import Given, read_cluster
from ropewalk.pipeline import study as pipeline
from ropewalk.pipeline.question import PipelineQuestion
from ropewalk.planner.pipelines import proposes
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer
from ropewalk.workload.source import open_workload


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose second layer reads nothing, so that uniform spaces have no pipelines of it; its head is heavy."""
    path = tmp_path_factory.mktemp("profiles") / "towers-pbs-4.txt"
    rows = [(1, 1, 1, 1), (1, 2, 1, 1), (30, 60, 9, 2), (31, 62, 9, 2), (29, 60, 9, 900)]
    lines = [
        f"node{at} -- layer{at} -- forward_compute_time={forward}, backward_compute_time={backward}, "
        f"activation_size={out}000000, parameter_size={weights}000000"
        for at, (forward, backward, out, weights) in enumerate(rows, 1)
    ]
    path.write_text("\n".join([*lines, *(f"  node{a} -- node{b}" for a, b in [(1, 3), (2, 3), (3, 4), (4, 5)])]) + "\n")
    return str(path)


def question(profile: str, place: str, batch: int, allow: tuple[str, ...] = ()) -> PlannerQuestion:
    cluster = read_cluster(place, Given(device="v100", nics=1, nic_bandwidth=1.25e9))
    return PlannerQuestion(profile, cluster, batch, precision="fp32", space=Space(schedules=("1f1b",)), allow=allow)


def test_a_model_that_is_no_chain_is_cut_into_stages_that_a_framework_runs(profile: str) -> None:
    found = answer(question(profile, "2x1", 16))
    assert (found.best.strategy.pipeline, found.best.strategy.parts) == (2, ())
    assert any(why is None for why in found.frameworks.values())
    assert found.bound.seconds <= found.best.seconds


def test_stages_with_replicas_of_their_own_are_taken_where_they_are_allowed(profile: str) -> None:
    asked = question(profile, "3x1", 12, ("unrunnable",))
    found = answer(asked)
    theirs = pipeline.answer(PipelineQuestion(profile, asked.cluster, batch=12, schedules=("1f1b",)))
    assert found.best.strategy.parts
    assert found.best.seconds <= theirs.promised_s * (1 + 1e-9)
    assert found.bound.seconds <= found.best.seconds
    assert "replicas of their own" in found.bound.proof


def test_nobody_proposes_pipelines_where_degrees_are_given_by_hand_or_the_space_has_them(profile: str) -> None:
    asked, measured, gpt = question(profile, "2x1", 16), open_workload(profile), open_workload("gpt2", 1, 64)
    assert proposes(asked, measured)
    assert not proposes(replace(asked, space=Space(pipeline=(1,))), measured)
    assert not proposes(asked, gpt)
    assert proposes(replace(asked, allow=("unrunnable",)), gpt)
