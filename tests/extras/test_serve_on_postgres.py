"""The same store in PostgreSQL: one writer, take-over, upgrades, history."""

from __future__ import annotations

from collections.abc import Iterator

import postgres_server
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from ropewalk.errors import ClusterError
from ropewalk.serve.operation import Drain, End, Submit
from ropewalk.serve.service import open_writer
from ropewalk.serve.store import lock, open_store
from ropewalk.serve.store.engine import engine_of
from ropewalk.serve.store.retention import Retention
from ropewalk.serve.store.store import EpochLost
from ropewalk.serve.store.tables import METADATA
from ropewalk.serve.store.upgrade import upgrade_to
from ropewalk.tenancy.plant import plant

LACK = postgres_server.missing()
pytestmark = [pytest.mark.extras, pytest.mark.skipif(LACK is not None, reason=str(LACK))]
SMALL = plant("leaf-spine:4x8x8", gpus_per_server=4)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres_server.postgres() as found:
        yield found


def test_an_older_store_is_upgraded_to_the_tables_of_today(url: str) -> None:
    engine = engine_of(url)
    upgrade_to(engine, "0001")
    engine.dispose()
    with pytest.raises(ClusterError, match="--upgrade"):
        open_store(url)
    store = open_store(url, upgrade=True)
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    store.close()


def test_what_was_acknowledged_is_there_after_a_restart(url: str) -> None:
    store = open_store(url)
    writer = open_writer(store, SMALL).start()
    job = writer.submit(Submit("a", 8), idempotency_key="k").result()
    ended = writer.submit(Submit("b", 8)).result().document["id"]
    writer.submit(End(ended)).result()
    writer.submit(Drain(("server:server5",))).result()
    assert writer.submit(Submit("a", 8), idempotency_key="k").result().body == job.body
    writer.close()
    store.close()
    store = open_store(url)
    writer = open_writer(store).start()
    assert writer.submit(Submit("a", 8), idempotency_key="k").result().body == job.body
    assert writer.read(lambda controller: list(controller.state.jobs)).result() == [job.document["id"]]
    assert writer.read(lambda controller: controller.state.occupancy.free).result() == 32 - 8 - 4
    assert [event.seq for event in writer.subscribe(0).take()] == list(range(1, writer.news.last_seq + 1))
    writer.close()
    assert not store.forget(Retention(1.0, 1.0, 1.0), writer._clock() + 10.0)
    assert (store.events(0, 9), store.job(ended)) == ([], None)
    store.close()


def test_a_second_writer_is_refused_and_one_that_was_taken_over_stops(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.2)
    store, problems = open_store(url), []
    writer = open_writer(store, fatal=problems.append).start()
    with pytest.raises(ClusterError, match="another process runs on the store"):
        open_store(url)
    with store.engine.connect() as other, other.begin():
        other.exec_driver_sql("UPDATE meta SET value = '99' WHERE key = 'epoch'")
    lost = writer.submit(Submit("b", 8))
    writer._thread.join(300)
    assert isinstance(problems[0], EpochLost)
    assert not lost.done()
    store.close()
