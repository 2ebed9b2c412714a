"""The reconciler over devices that fail, do half of it, do it late or lose rules; its process is killed anywhere."""

from contextlib import suppress
from random import Random

import pytest
from flaky_network import World
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.serve.operation import End, Resize, Submit
from ropewalk.serve.outcome import Refused
from ropewalk.serve.rules import reconciler as engine
from ropewalk.tenancy.plant import plant

SMALL = plant("leaf-spine:3x4x4", gpus_per_server=1)


def _live(world, steps):
    """Jobs come and go, rules get lost, stale ones turn up, and the reconciler works as well as it can."""
    random = world.random
    for _ in range(steps):
        act = random.random()
        if act < 0.3:
            with suppress(Refused):
                world.controller.apply(Submit("job", random.choice([1, 2, 4, 6, 8])), world.now)
        elif act < 0.5 and world.running():
            world.controller.apply(End(random.choice(world.running()).id), world.now)
        elif act < 0.53:
            world.lose(random.choice(list(world.driver.rules)))
        elif act < 0.56:
            world.plant_stale(random.choice(world.plant.leaf_names))
        elif act < 0.58 and world.running() and world.links_may_die:
            world.break_link()
        elif act < 0.6 and world.links_may_die:
            world.mend_links()
        elif act < 0.63 and world.running():
            with suppress(Refused):
                job = random.choice(world.running()).id
                world.controller.apply(Resize(job, random.choice([2, 4, 6, 8])), world.now)
        elif act < 0.7:
            world.tick(random.choice([0.1, 1.0, 4.0]))
        else:
            world.reconcile(whole=random.random() < 0.5, patient=random.random() < 0.5)
        world.look()


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.2]), st.sampled_from(["vclos", "laas", "ocs-vclos"]))
def test_no_path_of_a_job_ever_runs_over_a_link_of_another_and_everything_converges(seed, bad, policy):
    world = World(SMALL, Random(seed), policy=policy)
    world.links_may_die = policy != "ocs-vclos"
    world.luck_is_bad = bad
    _live(world, 60)
    world.luck_is_bad = 0.0
    world.mend_links()
    world.tick(20.0)
    for _ in range(4):
        world.reconcile()
    assert world.converged()
    assert not world.driver.late
    assert world.reconcile().quiet
    crossing = {job.id for job in world.running() if len(job.allocation.leafs) > 1}
    assert crossing == {job for job, _ in world.reconcile().ready}


def _trespasses(seeds, *mishaps):
    for seed in seeds:
        world = World(SMALL, Random(seed), mishaps)
        world.tick(20.0)
        world.luck_is_bad = 0.1
        try:
            _live(world, 100)
        except AssertionError:
            return True
    return False


def test_a_reconciler_that_trusts_what_it_told_a_device_is_caught(monkeypatch):
    assert not _trespasses(range(20), "kill", "fail")
    monkeypatch.setattr(engine.Reconciler, "_is_gone", lambda self, over, now: True)
    assert _trespasses(range(20), "kill", "fail")


def test_a_reconciler_that_forgets_late_commands_is_caught(monkeypatch):
    class Forgetful(engine.DriverTimeout):
        pass

    assert not _trespasses(range(40), "late")
    monkeypatch.setattr(engine, "DriverTimeout", Forgetful)
    assert _trespasses(range(40), "late")


def test_a_reconciler_that_forgets_what_a_killed_one_began_is_caught(monkeypatch):
    began = engine.Reconciler.__init__

    def at_ease(self, *given, **named):
        began(self, *given, **named)
        for seat in self._seats.values():
            seat.unsure_until = 0.0

    assert not _trespasses(range(40), "late", "kill")
    monkeypatch.setattr(engine.Reconciler, "__init__", at_ease)
    assert _trespasses(range(40), "late", "kill")


@pytest.mark.parametrize("seed", range(3))
def test_passes_over_what_is_behind_do_what_whole_passes_do(seed):
    world = World(SMALL, Random(seed))
    world.tick(20.0)
    for step in range(40):
        if step % 3 == 2 and world.running():
            world.controller.apply(End(world.random.choice(world.running()).id), world.now)
        else:
            world.controller.apply(Submit("job", world.random.choice([2, 4, 6])), world.now)
        for again in range(3):  # links that are given back start other jobs
            world.reconcile(whole=step + again == 0, patient=True)
        assert world.converged()
