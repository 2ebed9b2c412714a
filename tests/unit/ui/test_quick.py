"""Estimates: the latest question of everybody counts, the same one is worked on once, a lost worker costs one."""

from __future__ import annotations

import asyncio
import sys
import textwrap

import pytest

from ropewalk.ui.asked import Asked
from ropewalk.ui.process import Limits, WorkerLost
from ropewalk.ui.quick import Estimates, Superseded

PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""
WORKER = """
    import json, os, sys, time
    from ropewalk.ui.worker import work

    def run(words):
        with open(os.environ["SEEN"], "a") as seen: print(words[-1], file=seen)
        if words[-1] == "die": os._exit(9)
        if words[-1] == "wait":
            while not os.path.exists(os.environ["SEEN"] + ".go"): time.sleep(0.01)
        print(json.dumps({"model": words[-1]}))
        return 0

    if __name__ == "__main__":
        work(run, sys.stdin, sys.stdout.__class__(open(os.dup(1), "wb")))
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "small_estimator.py").write_text(textwrap.dedent(WORKER))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(path for path in sys.path if path)}")
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.setattr("ropewalk.ui.quick.cloud", lambda estimate: "")
    (tmp_path / "seen").touch()
    return "small_estimator"


def with_estimates(module, scenario):
    async def whole():
        estimates = Estimates(module, 1, Limits(PATIENCE_S, 2e9))
        await estimates.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await scenario(estimates)
        finally:
            await estimates.stop()

    asyncio.run(whole())


def asked(name: str) -> Asked:
    return Asked(("plan",), (name,))


async def begun(path, name):
    """Until a worker is on it."""
    while name not in path.read_text().split():
        await asyncio.sleep(0.01)


def test_a_newer_question_of_the_same_user_takes_the_place_of_one_that_waits(module, tmp_path):
    async def scenario(estimates):
        blocking = asyncio.create_task(estimates.ask(asked("wait"), "somebody"))
        await begun(tmp_path / "seen", "wait")
        old = asyncio.create_task(estimates.ask(asked("old"), "me"))
        await asyncio.sleep(0)
        new = asyncio.create_task(estimates.ask(asked("new"), "me"))
        with pytest.raises(Superseded):
            await old
        (tmp_path / "seen.go").touch()
        assert (await new)["estimate"] == {"model": "new"}
        await blocking

    with_estimates(module, scenario)
    assert (tmp_path / "seen").read_text().split() == ["wait", "new"]


def test_the_same_question_of_two_is_worked_on_once_even_if_the_first_goes_away(module, tmp_path):
    async def scenario(estimates):
        first = asyncio.create_task(estimates.ask(asked("wait"), "a"))
        await begun(tmp_path / "seen", "wait")
        second = asyncio.create_task(estimates.ask(asked("wait"), "b"))
        await asyncio.sleep(0)
        first.cancel()
        (tmp_path / "seen.go").touch()
        assert (await second)["estimate"] == {"model": "wait"}
        assert (await estimates.ask(asked("wait"), "c"))["estimate"] == {"model": "wait"}

    with_estimates(module, scenario)
    assert (tmp_path / "seen").read_text().split() == ["wait"]


def test_whoever_goes_away_before_a_worker_was_free_is_not_worked_for(module, tmp_path):
    async def scenario(estimates):
        blocking = asyncio.create_task(estimates.ask(asked("wait"), "somebody"))
        await begun(tmp_path / "seen", "wait")
        gone = asyncio.create_task(estimates.ask(asked("gone"), "me"))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        (tmp_path / "seen.go").touch()
        await blocking
        await estimates.ask(asked("next"), "you")

    with_estimates(module, scenario)
    assert (tmp_path / "seen").read_text().split() == ["wait", "next"]


def test_a_worker_that_dies_costs_one_estimate(module):
    async def scenario(estimates):
        with pytest.raises(WorkerLost):
            await estimates.ask(asked("die"), "me")
        assert (await estimates.ask(asked("alive"), "me"))["estimate"] == {"model": "alive"}

    with_estimates(module, scenario)


def test_the_command_that_prints_the_estimate_is_told(module):
    async def scenario(estimates):
        assert (await estimates.ask(asked("gpt2"), "me"))["command_line"] == "ropewalk plan --quick gpt2"

    with_estimates(module, scenario)
