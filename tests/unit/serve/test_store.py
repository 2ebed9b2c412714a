"""Stores: schema and its upgrades, one writer, backups, what is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from serve_invariants import check

from ropewalk.errors import ClusterError, InputError
from ropewalk.serve.operation import Cancel, End, Submit
from ropewalk.serve.restored import restored
from ropewalk.serve.service import open_writer
from ropewalk.serve.settings import Settings
from ropewalk.serve.slurm.view import TOKEN, view_of
from ropewalk.serve.store import open_store
from ropewalk.serve.store.backup import back_up
from ropewalk.serve.store.engine import engine_of
from ropewalk.serve.store.tables import METADATA
from ropewalk.serve.store.tokens import tokens
from ropewalk.serve.store.upgrade import revision, upgrade_to
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES

SMALL = plant("leaf-spine:4x8x8", gpus_per_server=4)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state.db")


def _fill(path: str) -> None:
    store = open_store(path)
    writer = open_writer(store, SMALL, Settings("laas")).start()
    for gpus in (20, 8, 16):
        writer.submit(Submit("job", gpus)).result()
    writer.submit(End("j2")).result()
    writer.close()
    store.close()


def test_the_migrations_make_the_tables_that_the_code_speaks_of(path: str) -> None:
    store = open_store(path)
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    store.close()


def test_an_older_store_is_upgraded_only_when_asked_and_keeps_everything(path: str) -> None:
    engine = engine_of(path)
    upgrade_to(engine, "0001")
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.exec_driver_sql("INSERT INTO meta VALUES ('epoch', '41')")
        connection.exec_driver_sql("INSERT INTO token VALUES ('t', 'salt', 'hash', 'read', 'ci', 1.0, NULL)")
    engine.dispose()
    with pytest.raises(ClusterError, match=r"older version .0001, this one needs 0003.*--upgrade"):
        open_store(path)
    store = open_store(path, upgrade=True)
    assert store.epoch == 42
    with store.engine.connect() as connection:
        assert revision(connection) == "0003"
        row = connection.exec_driver_sql("SELECT id, hash, role FROM token").one()
        assert tuple(row) == ("t", "hash", "read")
    store.close()


def test_jobs_of_an_older_store_belong_to_who_has_submitted_them(path: str) -> None:
    _fill(path)
    engine = engine_of(path)
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0002'")
        connection.exec_driver_sql("UPDATE event SET doc = '{\"actor\":\"ci/abc\"}' WHERE job = 'j1'")
        connection.exec_driver_sql("UPDATE job SET owner = 'ada'")
    engine.dispose()
    store = open_store(path, upgrade=True)
    saved = store.load()
    assert saved is not None
    assert {job.id: job.owner for job in saved.jobs}["j1"] == "ci/abc"
    assert {job.owner for job in saved.jobs if job.id != "j1"} == {""}
    with store.engine.connect() as connection:
        owners = dict(connection.exec_driver_sql("SELECT id, owner FROM job").all())
    assert (owners.pop("j1"), set(owners.values())) == ("ci/abc", {""})
    store.close()


def test_a_store_of_a_newer_version_or_of_something_else_is_left_alone(path: str, tmp_path: Path) -> None:
    _fill(path)
    engine = engine_of(path)
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(ClusterError, match=r"newer version .9999."):
        open_store(path, upgrade=True)
    other = engine_of(str(tmp_path / "other.db"))
    with other.connect().execution_options(writes=True) as connection, connection.begin():
        connection.exec_driver_sql("CREATE TABLE recipes (id INTEGER)")
    other.dispose()
    with pytest.raises(ClusterError, match="tables of another application"):
        open_store(str(tmp_path / "other.db"), upgrade=True)


def test_a_store_about_another_cluster_is_refused(path: str) -> None:
    _fill(path)
    store = open_store(path)
    with pytest.raises(ClusterError, match="holds another cluster"):
        open_writer(store, plant("leaf-spine:2x4x4", gpus_per_server=2))
    assert open_writer(store, SMALL, Settings("vclos"))._core.controller.state.settings.policy == "laas"
    store.close()


@pytest.mark.parametrize(
    ("fabric", "gpus_per_server"), [("leaf-spine:4x8x8", 4), ("fat-tree:4", 1), ("rails:8x4x4", 4)]
)
def test_a_store_opens_again_under_every_policy_of_its_plant(path: str, fabric: str, gpus_per_server: int) -> None:
    """Opening also runs small jobs under the policy, on a plant of the same kind: it must know this kind."""
    made = plant(fabric, gpus_per_server=gpus_per_server)
    names = [name for name, one in POLICIES.items() if one.buildable and POLICIES.refusal(name, (), made) is None]
    assert len(names) > 10
    for name in names:
        database = f"{path}.{name}"
        for _ in range(2):
            store = open_store(database)
            writer = open_writer(store, made, Settings(name)).start()
            asked = Submit("two leafs", 2 * int(made.gpus_per_leaf[0]))
            assert writer.submit(asked).result().document["state"] == "running", name
            writer.close()
            store.close()


@pytest.mark.parametrize(("fabric", "policy"), [("leaf-spine:4x8x8", "ocs-vclos-pods"), ("rails:8x4x4", "laas")])
def test_a_store_that_never_opened_takes_another_policy(path: str, fabric: str, policy: str) -> None:
    """The first start has a policy that its plant cannot have: nothing is kept of it."""
    made = plant(fabric, gpus_per_server=4)
    store = open_store(path)
    with pytest.raises(ClusterError, match=f"policy {policy} .* use one of ecmp.*vclos") as refusal:
        open_writer(store, made, Settings(policy))
    assert "ideal" not in str(refusal.value)
    store.close()
    store = open_store(path)
    assert open_writer(store, made, Settings("vclos"))._core.controller.state.settings.policy == "vclos"
    store.close()


def test_a_store_that_gives_a_gpu_away_twice_is_refused_when_it_is_opened(path: str) -> None:
    _fill(path)
    engine = engine_of(path)
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.exec_driver_sql(
            "UPDATE job SET doc = replace((SELECT doc FROM job WHERE id = 'j1'), '\"number\":1', '\"number\":3') "
            "WHERE id = 'j3'"
        )
    engine.dispose()
    store = open_store(path)
    with pytest.raises(ClusterError, match="taken"):
        open_writer(store)
    store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE job SET doc = '{' WHERE id = 'j1'",
        "UPDATE job SET doc = '{}' WHERE id = 'j1'",
        "UPDATE job SET doc = replace(doc, '\"gpus\":20', '\"gpus\":\"x\"') WHERE id = 'j1'",
        "UPDATE meta SET value = '[]' WHERE key = 'settings'",
        "DELETE FROM meta WHERE key = 'counters'",
        "UPDATE plant SET doc = '{\"leafs\": 1}'",
    ],
)
def test_a_store_with_a_damaged_document_is_refused_as_damaged(path: str, damage: str) -> None:
    _fill(path)
    engine = engine_of(path)
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        assert connection.exec_driver_sql(damage).rowcount == 1
    engine.dispose()
    store = open_store(path)
    with pytest.raises(ClusterError, match=r"is damaged .*: restore a backup"):
        open_writer(store)
    store.close()


def test_damaged_pages_are_said_by_whoever_reads_them(path: str) -> None:
    _fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()  # everything is in the one file
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name IN ('token', 'job')")
        pages = [page for (page,) in found]
    with open(path, "r+b") as file:
        for page in pages:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
    store = open_store(path, writer=False)
    for read in (lambda: tokens(store), store.load):
        with pytest.raises(ClusterError, match="malformed: restore a backup"):
            read()
    store.close()


def test_a_restarted_service_knows_jobs_that_have_ended_in_the_order_of_their_ends(path: str) -> None:
    store = open_store(path)
    writer = open_writer(store, SMALL).start()
    for _ in range(4):
        writer.submit(Submit("job", 8)).result()
    for job in ("j3", "j1", "j4"):
        writer.submit(Cancel(job)).result()
    before = writer.read(lambda controller: list(controller.state.ended.values())).result()
    writer.close()
    store.close()
    store = open_store(path)
    writer = open_writer(store).start()
    assert writer.read(lambda controller: list(controller.state.ended.values())).result() == before
    assert [job.id for job in before] == ["j3", "j1", "j4"]
    assert writer.read(lambda controller: list(controller.state.jobs)).result() == ["j2"]
    writer.close()
    store.close()


def test_of_many_ended_jobs_the_latest_are_loaded(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropewalk.serve.store.store.KEPT_ENDED", 2)
    store = open_store(path)
    writer = open_writer(store, SMALL).start()
    for _ in range(4):
        writer.submit(Submit("job", 8)).result()
    for job in ("j4", "j2", "j1"):
        writer.submit(End(job)).result()
    writer.close()
    saved = store.load()
    assert saved is not None
    assert ([job.id for job in saved.jobs], [job.id for job in saved.ended]) == (["j3"], ["j1", "j2"])
    store.close()


def test_a_cancellation_that_slurm_was_not_told_of_yet_outlives_a_restart(path: str) -> None:
    store = open_store(path)
    writer = open_writer(store, SMALL).start()
    writer.submit(Submit("job", 8, labels={TOKEN: "t7"})).result()
    writer.submit(Cancel("j1")).result()
    writer.close()
    store.close()
    store = open_store(path)
    writer = open_writer(store).start()
    assert writer.read(view_of).result().cancelled == {"t7"}
    writer.close()
    store.close()


def test_a_backup_is_consistent_while_the_service_works(path: str, tmp_path: Path) -> None:
    store, stop = open_store(path), Event()
    writer = open_writer(store, SMALL).start()

    def work() -> None:
        while not stop.is_set():
            job = writer.submit(Submit("job", 8)).result().document["id"]
            writer.submit(End(job)).result()

    worker = Thread(target=work)
    worker.start()
    try:
        for number in range(3):
            back_up(path, tmp_path / f"copy{number}.db")
    finally:
        stop.set()
        worker.join()
        writer.close()
        store.close()
    for number in range(3):
        copy = open_store(str(tmp_path / f"copy{number}.db"))
        saved = copy.load()
        assert saved is not None
        check(restored(saved).state)
        assert [event.seq for event in copy.events(0, 10**6)] == list(range(1, saved.counters.next_event))
        copy.close()
    with pytest.raises(InputError, match="already exists"):
        back_up(path, tmp_path / "copy0.db")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://db/x", "cannot be kept in mysql"),
        ("sqlite://", "cannot be kept in sqlite"),
        ("nonsense://x", "cannot be read|cannot be kept"),
        ("sqlite:////proc/none/state.db", "choose another path"),
    ],
)
def test_urls_that_name_no_store_are_refused(url: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        open_store(url)


def test_reading_a_store_that_does_not_exist_makes_none(path: str) -> None:
    with pytest.raises(ClusterError, match="does not exist"):
        open_store(path, writer=False)
    assert not Path(path).exists()
