"""Workers, their limits and the fairness of the queue, with a worker that is a few lines of Python."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap

import pytest

from ropewalk.ui.asked import Asked
from ropewalk.ui.pool import MOST_OF_ONE, QueueFull, WorkerPool
from ropewalk.ui.process import Limits

PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""
PATIENT = Limits(PATIENCE_S, 2e9)
WORKER = """
    import os, sys, time
    from ropewalk.ui.worker import work

    def run(words):
        what, *rest = words[1:]
        if what == "sleep": time.sleep(float(rest[0]))
        if what == "die": os._exit(9)
        if what == "eat": rest.append(bytearray(200_000_000)); time.sleep(900)
        if what == "break": raise RuntimeError("a defect")
        print("answer to", what)
        return 2 if what == "refuse" else 0

    if __name__ == "__main__":
        work(run, sys.stdin, sys.stdout.__class__(open(os.dup(1), "wb")))
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "small_worker.py").write_text(textwrap.dedent(WORKER))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(path for path in sys.path if path)}")
    return "small_worker"


def asked(*words: str) -> Asked:
    return Asked(("say",), words)


def with_pool(module, scenario, *, workers=1, limits=None):
    """Run a scenario with a pool; answers what was finished, in order."""
    finished = []

    async def whole():
        pool = WorkerPool(
            module,
            workers,
            limits or PATIENT,
            lambda work, reply, folder: finished.append((work.asked.arguments, reply["code"])),
        )
        await pool.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await scenario(pool)
        finally:
            await pool.stop()

    asyncio.run(whole())
    return finished


async def ended(work):
    while not work.ended:
        await work.changed.wait()
    return work


def test_questions_are_answered_and_the_same_one_is_worked_on_once(module):
    async def scenario(pool):
        first, second = pool.ask(asked("hello"), "a"), pool.ask(asked("hello"), "b")
        assert first is second
        assert (await ended(first)).state == "done"
        assert pool.ask(asked("hello"), "c").state == "done"
        refused = await ended(pool.ask(asked("refuse"), "a"))
        assert refused.state == "failed"

    assert with_pool(module, scenario) == [(("hello",), 0), (("refuse",), 2)]


def test_a_worker_that_dies_costs_one_answer(module):
    async def scenario(pool):
        dead = await ended(pool.ask(asked("die"), "a"))
        assert dead.state == "failed"
        assert "ended" in dead.failure
        broken = await ended(pool.ask(asked("break"), "a"))
        assert "a defect" in broken.failure
        assert (await ended(pool.ask(asked("hello"), "a"))).state == "done"

    with_pool(module, scenario)


def test_too_long_and_too_large_are_ended_with_a_reason(module):
    async def scenario(pool):
        slow = await ended(pool.ask(asked("sleep", "900"), "a"))
        assert "took longer than 1 s" in slow.failure
        pool._limits = PATIENT  # the next one has to wait until there is a new process
        assert (await ended(pool.ask(asked("hello"), "a"))).state == "done"

    with_pool(module, scenario, limits=Limits(1.0, 2e9))

    async def large(pool):
        eaten = await ended(pool.ask(asked("eat"), "a"))
        assert "of memory" in eaten.failure

    with_pool(module, large, limits=Limits(PATIENCE_S, 1.5e8))


def test_whoever_no_longer_wants_it_stops_it_unless_others_do(module):
    async def scenario(pool):
        work = pool.ask(asked("sleep", "900"), "a")
        pool.ask(asked("sleep", "900"), "b")
        assert pool.cancel(work.asked.key, "a")
        await asyncio.sleep(0.1)
        assert work.state == "running"
        assert not pool.cancel(work.asked.key, "a")
        assert pool.cancel(work.asked.key, "b")
        assert (await ended(work)).state == "cancelled"

    with_pool(module, scenario)


def test_a_question_that_is_asked_again_while_it_is_ended_is_worked_on_anew(module):
    async def scenario(pool):
        work = pool.ask(asked("sleep", "900"), "a")
        assert pool.cancel(work.asked.key, "a")
        assert work.state == "running"  # its process has not heard of it yet
        again = pool.ask(asked("sleep", "900"), "a")
        assert (await ended(work)).state == "cancelled"
        while again.state == "waiting":
            await again.changed.wait()
        assert again.state == "running"

    with_pool(module, scenario)


def test_users_take_turns(module):
    async def scenario(pool):
        works = [pool.ask(asked("a", str(number)), "greedy") for number in range(4)]
        works += [pool.ask(asked("b"), "modest")]
        await asyncio.gather(*map(ended, works))

    order = [words[0] for words, _ in with_pool(module, scenario)]
    assert order.index("b") <= 2


def test_a_full_queue_says_when_to_come_back(module):
    async def scenario(pool):
        for number in range(1 + MOST_OF_ONE):
            pool.ask(asked("sleep", f"900.{number}"), "greedy")
        with pytest.raises(QueueFull) as full:
            pool.ask(asked("one more"), "greedy")
        assert full.value.retry_s >= 1
        pool.ask(asked("hello"), "modest")

    with_pool(module, scenario)


def test_documents_of_work_are_json(module):
    async def scenario(pool):
        work = await ended(pool.ask(asked("hello"), "a"))
        assert json.loads(json.dumps(work.as_document()))["command_line"] == "ropewalk say hello"

    with_pool(module, scenario)
