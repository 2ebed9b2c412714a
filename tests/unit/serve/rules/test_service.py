"""The reconciler in its thread, over a network in memory."""

import time
from random import Random

import pytest
from flaky_network import World

from ropewalk.errors import ClusterError
from ropewalk.serve.operation import End, NoteRules, Repair, Submit
from ropewalk.serve.outcome import Refused
from ropewalk.serve.rules.changes import JobRules, WantedRules
from ropewalk.serve.rules.driver import DriverError
from ropewalk.serve.rules.reconciler import FIRST_WAIT_S, Reconciler
from ropewalk.serve.rules.rule import Join, Rule
from ropewalk.tenancy.plant import plant

SMALL = plant("leaf-spine:2x4x4", gpus_per_server=1)
PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""


@pytest.fixture
def world():
    made = World(SMALL, Random(0))
    made.tick(20.0)
    return made


def _submit(world, gpus=8):
    return world.controller.apply(Submit("job", gpus), world.now).answer["id"]


def test_rules_of_a_job_are_listed_with_what_is_there(world):
    job = _submit(world)
    assert world.service.rules_of_job(job)["rules_are"] == "pending"
    world.reconcile()
    document = world.service.rules_of_job(job)
    assert document["rules_are"] == "in place"
    assert len(document["rules"]) == 10
    assert all(rule["present"] for rule in document["rules"])
    assert world.service.rules_of_job(_one_leaf(world))["rules_are"] == "none"
    with pytest.raises(Refused):
        world.service.rules_of_job("j99")


def _one_leaf(world):
    world.controller.apply(End("j1"), world.now)
    for _ in range(2):
        world.reconcile()
    return _submit(world, 2)


def test_a_dead_link_leads_to_other_links_and_a_repair_back(world):
    small = [_submit(world, 2) for _ in range(4)]
    for job in (small[1], small[3]):
        world.controller.apply(End(job), world.now)
    job = _submit(world, 4)
    world.reconcile()
    before = world.controller.state.jobs[job].allocation.spines
    world.driver.dead["leaf0"].add(("leaf0", SMALL.spine_names[before[0]]))
    for _ in range(3):
        world.reconcile()
    moved = world.controller.state.jobs[job]
    assert moved.generation == 2
    assert before[0] not in moved.allocation.spines
    assert world.converged()
    world.driver.dead["leaf0"].clear()
    world.controller.apply(Repair((f"link:leaf0-{SMALL.spine_names[before[0]]}",)), world.now)
    world.reconcile()
    assert world.converged()


def test_a_device_that_fails_is_left_alone_for_longer_each_time(world):
    job = _submit(world)
    world.driver.present = _refuse
    waits = []
    for _ in range(4):
        world.reconcile(patient=True)
        waits.append(world.service._reconciler.retry_in())
        assert world.reconcile(patient=True).resting == tuple(sorted(world.driver.rules))
        world.now += waits[-1]
    assert waits == pytest.approx([FIRST_WAIT_S * 2**number for number in range(4)])
    assert world.service.metrics()["devices_failing"] == 6
    assert world.service.rules_of_job(job)["rules_are"] == "pending"
    del world.driver.present
    world.reconcile()
    assert world.converged()
    assert world.service.metrics()["devices_failing"] == 0


def _refuse(device):
    raise DriverError(f"{device}: it does not answer: try again")


def test_the_thread_follows_commits_and_the_clock(world):
    service = world.service
    service.period_s = 0.05
    service.start()
    try:
        _submit(world)
        service.hint()
        _wait(world.converged)
        world.lose("leaf0")
        _wait(world.converged)
    finally:
        service.stop()
    assert service.metrics()["passes_total"] >= 2
    document = service.reconcile()
    assert document["added"] == document["removed"] == []


def test_the_thread_survives_what_nobody_expected(world):
    said, service = [], world.service
    service._say = lambda event, level, **facts: said.append((event, facts.get("message", "")))
    broken = world.driver.present
    world.driver.present = lambda device: 1 / 0
    service.period_s = 0.05
    _submit(world)
    service.start()
    try:
        _wait(lambda: said)
        world.driver.present = broken
        _wait(world.converged)
    finally:
        service.stop()
    assert said[0][0] == "rules-failed"
    assert "ZeroDivisionError" in said[0][1]


def _wait(holds):
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_rules_that_no_driver_sets_are_reported(world):
    body = Join("leaf0", "spine1")
    wanted = WantedRules((JobRules("j1", 1, (Rule.on("ocs0", body, "j1", 1),)),))
    report = Reconciler([world.driver], clock=lambda: world.now).once(wanted)
    assert "no driver of this service installs rules of the kind 'join'" in report.failed["ocs0"]
    assert not report.ready


def test_notes_of_unknown_kinds_are_refused():
    with pytest.raises(ClusterError, match="there is no kind 'gossip'"):
        NoteRules("gossip", "x")
