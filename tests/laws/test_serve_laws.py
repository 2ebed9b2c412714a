"""Laws of the controller: whatever is asked in whatever order, every invariant holds after each operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from serve_walk import POLICIES, Walk, operations

from ropewalk.errors import ClusterError
from ropewalk.serve.controller import Controller
from ropewalk.serve.operation import Submit
from ropewalk.serve.outcome import Refused
from ropewalk.serve.projection import what_if
from ropewalk.serve.settings import Settings
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import POLICIES as POLICY_TABLE

SHAPES = (
    ("leaf-spine:4x8x8", 4), ("leaf-spine:6x4x4x2", 2), ("leaf-spine:3x8x8x2", 4), ("fat-tree:8", 2), ("rails:8x4x4", 4)
)  # fmt: skip


def _plant(number: int) -> Plant:
    shape, size = SHAPES[number]
    return plant(shape, gpus_per_server=size)


def _runs(policy: str, where: Plant, *, keep_links: bool = False) -> bool:
    """Does a controller take this policy for such a cluster?"""
    try:
        Settings(policy, keep_links=keep_links).check(where)
    except ClusterError:
        return False
    return True


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32),
    policy=st.sampled_from(POLICIES),
    shape=st.integers(0, len(SHAPES) - 1),
    keep_links=st.booleans(),
)
def test_no_operation_breaks_an_invariant_or_has_two_outcomes(
    seed: int, policy: str, shape: int, keep_links: bool
) -> None:
    assume(_runs(policy, _plant(shape), keep_links=keep_links))
    walk = Walk(_plant(shape), Settings(policy, keep_links=keep_links), seed, restart_every=10)
    for _ in range(60):
        walk.step()
    walk.finish()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_long_walk_meets_every_operation(policy: str) -> None:
    """Without changes to other kinds of plants, so that jobs cross leafs for long."""
    kind = type(POLICY_TABLE[policy].plant(_plant(0)))
    policies = tuple(one for one in POLICIES if type(POLICY_TABLE[one].plant(_plant(0))) is kind)
    walk = Walk(_plant(0), Settings(policy, keep_links=True), seed=7, policies=policies)
    for _ in range(700):
        walk.step()
    walk.finish()
    seen = {name.split()[0] for name in walk.counts}
    assert {"Submit", "Adopt", "End", "Cancel", "Resize", "Hold", "Release", "Requeue", "Bind", "Expire"} <= seen
    assert {"Drain", "Restore", "Fail", "Repair", "RulesGone", "ChangePolicy"} <= seen
    assert walk.counts["event job-started"] > 50


@pytest.mark.parametrize("policy", ["ocs-vclos", "ocs-vclos-pods"])
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), shape=st.sampled_from((("fat-tree:8", 2), ("fat-tree:4", 1), ("fat-tree:8,4,2", 2))))
def test_circuits_of_three_tiers_survive_whatever_is_asked(policy: str, seed: int, shape: tuple[str, int]) -> None:
    """Jobs over pods are submitted, resized, adopted, rerouted when switches or cores fail, and never share a fibre."""
    name, size = shape
    where = plant(name, gpus_per_server=size)
    walk = Walk(where, Settings(policy), seed, policies=("vclos", "ocs-vclos", "ocs-vclos-pods"), restart_every=10)
    for _ in range(80):
        walk.step()
    walk.finish()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(("ecmp", "vclos", "laas")))
def test_what_if_is_what_submitting_does(seed: int, policy: str) -> None:
    walk = Walk(_plant(0), Settings(policy), seed, policies=("ecmp", "vclos", "laas"))
    for _ in range(30):
        walk.step()
        state = walk.one.state
        asked = operations(state, walk.chance, walk.policies)
        if not isinstance(asked, Submit) or asked.hold:
            continue
        foretold = _answer(lambda fork, one: what_if(fork.state, one), Controller(state.fork()), asked)
        done = _answer(lambda controller, one: controller.apply(one, controller.state.now).answer, walk.one, asked)
        if "code" in foretold:
            assert foretold == done
            continue
        walk.twin.apply(asked, walk.twin.state.now)
        assert foretold["would_start"] == (done["state"] == "running")
        assert foretold["now"] == done["allocation"]


def _answer(
    ask: Callable[[Controller, Submit], dict[str, Any]], controller: Controller, asked: Submit
) -> dict[str, Any]:
    try:
        return ask(controller, asked)
    except Refused as refusal:
        return refusal.as_document()
