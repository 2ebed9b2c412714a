"""Estimates: the latest question of everybody counts, the same one is worked on once, a lost worker costs one."""

from __future__ import annotations

import asyncio
import sys
import textwrap

import pytest

from ropewalk.errors import InputError
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
        if words[-1] == "break": raise RuntimeError("a slip")
        if words[-1] == "wait":
            while not os.path.exists(os.environ["SEEN"] + ".go"): time.sleep(0.01)
        print(json.dumps({"model": words[-1]} | ({"pid": os.getpid()} if words[-1] == "pid" else {})))
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


def with_estimates(module, scenario, workers=1):
    async def whole():
        estimates = Estimates(module, workers, Limits(PATIENCE_S, 2e9))
        await estimates.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await scenario(estimates)
        finally:
            await estimates.stop()

    asyncio.run(whole())


def asked(name: str, *before: str) -> Asked:
    return Asked(("plan",), (*before, name))


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


def test_whoever_moves_a_slider_on_keeps_the_place_in_the_queue(module, tmp_path):
    async def scenario(estimates):
        blocking = asyncio.create_task(estimates.ask(asked("wait"), "somebody"))
        await begun(tmp_path / "seen", "wait")
        waiting = [asyncio.create_task(estimates.ask(asked("old"), "me"))]
        for name, user in (("yours", "you"), ("new", "me")):
            await asyncio.sleep(0)
            waiting.append(asyncio.create_task(estimates.ask(asked(name), user)))
        await asyncio.sleep(0)
        (tmp_path / "seen.go").touch()
        await asyncio.gather(blocking, *waiting, return_exceptions=True)

    with_estimates(module, scenario)
    assert (tmp_path / "seen").read_text().split() == ["wait", "new", "yours"]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_question_that_waits_twice_is_worked_on_once(module, tmp_path, workers):
    async def scenario(estimates):
        blocking = [
            asyncio.create_task(estimates.ask(asked("wait", str(one)), f"somebody{one}")) for one in range(workers)
        ]
        while (tmp_path / "seen").read_text().split().count("wait") < workers:
            await asyncio.sleep(0.01)
        same = [asyncio.create_task(estimates.ask(asked("same"), user)) for user in "abc"]
        await asyncio.sleep(0)
        (tmp_path / "seen.go").touch()
        assert [one["estimate"]["model"] for one in await asyncio.gather(*same)] == ["same"] * 3
        await asyncio.gather(*blocking)

    with_estimates(module, scenario, workers)
    assert (tmp_path / "seen").read_text().split().count("same") == 1


def test_another_batch_goes_to_the_process_that_knows_the_network(module):
    async def scenario(estimates):
        found = [await estimates.ask(asked("pid", "--batch", str(batch)), "me") for batch in range(4)]
        assert len({one["estimate"]["pid"] for one in found}) == 1
        other = await estimates.ask(asked("pid", "--cluster", "4x8"), "me")
        assert other["estimate"]["pid"] != found[0]["estimate"]["pid"]

    with_estimates(module, scenario, 2)


def test_a_defect_is_said_to_be_one_and_the_next_question_has_a_fresh_process(module):
    async def scenario(estimates):
        before = await estimates.ask(asked("pid", "--seq", "1"), "me")
        with pytest.raises(InputError, match="defect of ropewalk, not of the question: report it"):
            await estimates.ask(asked("break"), "me")
        after = await estimates.ask(asked("pid", "--seq", "2"), "me")
        assert after["estimate"]["pid"] != before["estimate"]["pid"]

    with_estimates(module, scenario)


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
