"""Ports that are wired for the best strategy: never slower than a regular network of the same ports, above a bound."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import InputError
from ropewalk.export.run_folder import write_run_folder
from ropewalk.hardware import Given, on_network, read_cluster
from ropewalk.planner.on_ports import planned
from ropewalk.planner.planned import plan_of, question_of
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.plans import dumps, loads
from ropewalk.training import answer as simulated
from ropewalk.training.planned import question_of as running

SMALL = Space(
    server=4, tensor=(2,), context=(1,), micro_batch=(8,), zero=(0,), recompute=("none",), sequence=(False,),
    schedules=("1f1b",),
)  # fmt: skip
REGULAR = ("ring", "torus", "circulant")


def asked(shape: str, gbps: float, batch: int, space: Space = SMALL) -> PlannerQuestion:
    cluster = read_cluster(shape, Given(device="h200", nic_bandwidth=gbps * 1e9 / 8))
    return PlannerQuestion("gpt2", cluster, batch, 256, space=space)


def on(question: PlannerQuestion, network: str) -> PlannerQuestion:
    return replace(question, cluster=on_network(question.cluster, network))


@pytest.fixture(scope="module")
def stages():
    """A slow network, on which stages in a row are the best; first and last stage share the embedding."""
    return asked("4x4", 10, 16)


@pytest.fixture(scope="module")
def wired(stages):
    return planned(on(stages, "wire"))


def _regular(question: PlannerQuestion) -> dict[str, float]:
    found = {}
    for name in REGULAR:
        try:
            there = on(question, name)
        except InputError:  # it has no member of this size, or other numbers of ports
            continue
        found[name] = planned(there).best.seconds
    return found


def test_stages_in_a_row_are_wired_no_worse_than_a_torus(stages, wired):
    others = _regular(stages)
    assert set(others) == {"ring", "torus"}
    assert wired.best.seconds <= min(others.values()) * (1 + 1e-6)


@pytest.mark.parametrize(("shape", "gbps", "batch"), [("6x2", 10, 12)])
def test_wired_ports_are_never_slower_than_a_regular_network_of_the_same_ports(shape, gbps, batch):
    few = replace(SMALL, server=2, pipeline=(1, 3), micro_batch=(2,))
    question = asked(shape, gbps, batch, few)
    found, others = planned(on(question, "wire")), _regular(question)
    assert others
    assert found.best.seconds <= min(others.values()) * (1 + 1e-6)
    assert found.bound.seconds <= found.best.seconds


def test_no_strategy_is_below_the_bound_of_all_wirings(wired):
    known = wired.simulated_s[np.isfinite(wired.simulated_s)]
    assert 0 < wired.bound.seconds <= wired.bound.uniform_s <= known.min()
    assert wired.best.seconds <= known.min()
    assert "for every wiring" in wired.bound.proof


def test_the_answer_is_of_the_wiring_itself(wired):
    assert wired.question.designed == wired.training.question.network.designed
    assert wired.best.seconds == pytest.approx(wired.training.statistics.step_time_s, rel=1e-9)
    assert wired.plain.seconds == pytest.approx(wired.plain_training.statistics.step_time_s, rel=1e-9)
    assert "wirings were searched" in wired.remarks[-1]


def test_its_plan_keeps_the_cables_and_the_question(stages, wired):
    plan = loads(dumps(plan_of(wired)))
    assert plan.designed == wired.question.designed
    assert simulated(running(plan)).statistics.step_time_s == pytest.approx(wired.best.seconds, rel=1e-9)
    assert question_of(plan) == on(stages, "wire")


def test_it_reruns_to_the_same_bytes():
    few = replace(SMALL, server=2, tensor=(1,), pipeline=(1,), micro_batch=(2,))
    question = on(asked("2x2", 25, 8, few), "wire")
    assert dumps(plan_of(planned(question))) == dumps(plan_of(planned(question)))


def test_a_run_folder_has_the_cables_and_tables_of_the_answer(wired, tmp_path):
    """Every cable is patched once, and every rule sends on over a cable; following them arrives."""
    folder = tmp_path / "job"
    write_run_folder(plan_of(wired), folder)
    designed = wired.question.designed
    patches = _rows(folder / "patch.csv")
    laid: dict[tuple[int, int], int] = {}
    for row in patches:
        ends = tuple(sorted((int(row["server"]), int(row["peer"]))))
        laid[ends] = laid.get(ends, 0) + 1
    assert laid == {(a, b): count for a, b, count in designed.wiring.cables}
    used = [(row["panel"], end) for row in patches for end in (row["server"], row["peer"])]
    assert len(used) == len(set(used)), "a panel sees every server once"
    rules = {(row["server"], row["from"], row["to"], row["next"]): float(row["share"])
             for row in _rows(folder / "tables.csv")}  # fmt: skip
    for share, nodes in designed.routes:
        names = [f"server{node}" for node in nodes]
        assert rules[names[0], "-", names[-1], names[1]] == pytest.approx(share)
        for before, here, onward in zip(names, names[1:], names[2:], strict=False):
            assert rules[here, before, names[-1], onward] == 1.0
    assert "patch.csv" in (folder / "README.md").read_text()


def _rows(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))
