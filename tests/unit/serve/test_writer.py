"""The writer: batches, idempotency, versions, one process on a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from serve_invariants import check

from ropewalk.errors import ClusterError
from ropewalk.serve import answers, state
from ropewalk.serve.controller import STEPS
from ropewalk.serve.operation import Cancel, End, Submit
from ropewalk.serve.outcome import Refused
from ropewalk.serve.service import open_writer
from ropewalk.serve.store import open_store
from ropewalk.serve.store.retention import Retention
from ropewalk.serve.store.store import EpochLost
from ropewalk.serve.turn import Turn
from ropewalk.serve.writer import Writer
from ropewalk.tenancy.plant import plant

PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state.db")


@pytest.fixture
def writer(path: str) -> Iterator[Writer]:
    store = open_store(path)
    writer = open_writer(store, plant("leaf-spine:4x8x8", gpus_per_server=4)).start()
    yield writer
    writer.close()
    store.close()


def test_the_same_key_and_request_give_the_first_answer(writer: Writer) -> None:
    first = writer.submit(Submit("a", 8), idempotency_key="k").result()
    again = writer.submit(Submit("a", 8), idempotency_key="k").result()
    assert again.body == first.body
    assert (first.replayed, again.replayed) == (False, True)
    assert writer.read(lambda controller: len(controller.state.jobs)).result() == 1


def test_the_same_key_twice_in_one_batch_is_one_operation(writer: Writer) -> None:
    both = [writer.submit(Submit("a", 8), idempotency_key="k") for _ in range(2)]
    assert len({one.result().body for one in both}) == 1


def test_the_same_key_with_another_request_is_refused(writer: Writer) -> None:
    writer.submit(Submit("a", 8), idempotency_key="k").result()
    with pytest.raises(Refused) as refused:
        writer.submit(Submit("a", 16), idempotency_key="k").result()
    assert refused.value.code == "idempotency-conflict"


def test_a_stale_version_is_refused(writer: Writer) -> None:
    job = writer.submit(Submit("a", 8)).result().document
    with pytest.raises(Refused) as refused:
        writer.submit(End(job["id"]), if_match=job["version"] + 1).result()
    assert refused.value.code == "version-conflict"
    assert writer.submit(End(job["id"]), if_match=job["version"]).result().document["state"] == "ended"


def test_a_second_process_on_the_store_is_refused(writer: Writer, path: str) -> None:
    with pytest.raises(ClusterError, match="another process runs on the store"):
        open_store(path)


def test_events_come_in_order_from_memory_and_from_the_store(writer: Writer) -> None:
    for number in range(10):
        writer.submit(Submit(f"job {number}", 8)).result()
    taken = writer.subscribe(3).take()
    assert [event.seq for event in taken] == list(range(4, writer.news.last_seq + 1))
    assert writer.store.events(3, 1000) == taken


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    store = open_store(path)
    first = open_writer(store, plant("leaf-spine:4x8x8", gpus_per_server=4)).start()
    ids = [first.submit(Submit(f"job {number}", 8)).result().document["id"] for number in range(6)]
    first.submit(End(ids[0])).result()
    first.submit(Cancel(ids[5])).result()
    before = first.read(lambda c: (answers.status(c.state), answers.queue(c.state))).result()
    first.close()
    store.close()
    store = open_store(path)
    second = open_writer(store).start()
    assert second.read(lambda c: (answers.status(c.state), answers.queue(c.state))).result() == before
    assert second.submit(Submit("next", 1)).result().document["id"] == "j7"
    second.close()
    store.close()


def test_a_defect_in_one_operation_harms_no_other(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    def half_done(turn: Turn, asked: Cancel) -> dict[str, Any]:
        turn.let_go(turn.state.job(asked.job))
        raise ZeroDivisionError("halfway")

    running = writer.submit(Submit("a", 16)).result().document["id"]
    monkeypatch.setitem(STEPS, Cancel, half_done)
    answers_to = [writer.submit(Submit("b", 8)), writer.submit(Cancel(running)), writer.submit(Submit("c", 8))]
    assert [one.exception() is None for one in answers_to] == [True, False, True]
    assert isinstance(answers_to[1].exception(), Refused)
    writer.read(lambda controller: check(controller.state)).result()
    assert writer.read(lambda controller: controller.state.job(running).state).result() == "running"
    assert writer.read(lambda controller: sorted(controller.state.jobs)).result() == ["j1", "j2", "j3"]
    assert [event.job for event in writer.store.events(0, 99)] == ["j1", "j1", "j2", "j2", "j3", "j3"]


def test_whoever_goes_away_before_the_thread_looks_asks_for_nothing(writer: Writer) -> None:
    gate = Event()
    blocked = writer.read(lambda controller: gate.wait(PATIENCE_S))
    given_up = writer.submit(Submit("a", 8))
    assert given_up.cancel()
    gate.set()
    assert blocked.result()
    assert writer.submit(Submit("b", 8)).result().document["id"] == "j1"


def test_a_job_that_ended_long_ago_is_known_from_the_store(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "KEPT_ENDED", 1)
    ids = [writer.submit(Submit(f"job {number}", 8)).result().document["id"] for number in range(3)]
    first = writer.submit(End(ids[0])).result()
    for job in ids[1:]:
        writer.submit(End(job)).result()
    assert ids[0] not in writer.read(lambda controller: dict(controller.state.ended)).result()
    assert writer.submit(End(ids[0])).result().document == first.document
    assert writer.submit(Cancel("j99")).exception() is not None


def test_reservations_expire_by_themselves(tmp_path: Path) -> None:
    store, now = open_store(str(tmp_path / "state.db")), [100.0]
    writer = open_writer(store, plant("leaf-spine:4x8x8", gpus_per_server=4), clock=lambda: now[0]).start()
    job = writer.submit(Submit("a", 8, expires_s=5.0)).result().document["id"]
    now[0] = 106.0
    while writer.read(lambda controller: job in controller.state.jobs).result():
        pass
    assert store.job(job).outcome == "lost"  # type: ignore[union-attr]
    writer.close()
    store.close()


def test_a_writer_whose_store_was_taken_over_stops_without_an_answer(path: str) -> None:
    store, problems = open_store(path), []
    writer = open_writer(store, plant("leaf-spine:4x8x8", gpus_per_server=4), fatal=problems.append).start()
    writer.submit(Submit("a", 8)).result()
    with store.engine.connect().execution_options(writes=True) as other, other.begin():
        other.exec_driver_sql("UPDATE meta SET value = '99' WHERE key = 'epoch'")
    lost = writer.submit(Submit("b", 8))
    writer._thread.join(PATIENCE_S)
    assert isinstance(problems[0], EpochLost)
    assert not lost.done()
    store.close()


def test_history_is_deleted_when_it_is_old_and_the_counters_go_on(path: str) -> None:
    store, now = open_store(path), [1000.0]
    writer = open_writer(store, plant("leaf-spine:4x8x8", gpus_per_server=4), clock=lambda: now[0]).start()
    job = writer.submit(Submit("a", 8), idempotency_key="k").result().document["id"]
    writer.submit(End(job)).result()
    writer.close()
    assert not store.forget(Retention(events_s=50, ended_jobs_s=50, answers_s=50), 1051.0)
    assert (store.events(0, 9), store.job(job)) == ([], None)
    store.close()
    store = open_store(path)
    writer = open_writer(store).start()
    again = writer.submit(Submit("a", 8), idempotency_key="k").result()
    assert (again.document["id"], again.replayed, writer.news.last_seq) == ("j2", False, 5)
    writer.close()
    store.close()
