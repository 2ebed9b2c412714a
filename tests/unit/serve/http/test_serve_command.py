"""`ropewalk serve` before it serves: what it refuses, tokens, backups, the unit for systemd."""

import json
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from ropewalk.errors import InputError
from ropewalk.serve.client import Client, ServiceUnreachable
from ropewalk.serve.http.server import Listening, bound, check_openness
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.plant_differences import differences

SMALL = ("--fabric", "leaf-spine:4x4x4", "--gpus-per-server", "2")


@pytest.fixture
def database(tmp_path, ropewalk):
    """A database that is about 16 GPUs, and nobody runs on."""
    from ropewalk.serve.service import open_writer
    from ropewalk.serve.store import open_store

    path = tmp_path / "serve.db"
    store = open_store(str(path))
    open_writer(store, plant("leaf-spine:4x4x4", gpus_per_server=2))
    store.close()
    return path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "there are no tokens"),
        (("--no-auth", "--host", "0.0.0.0"), "anyone on the network"),
        (("--no-auth", "--host", "none"), "--socket"),
        (("--no-auth", "--tls-cert", "x.pem"), "--tls-key"),
        (("--no-auth", "--socket-mode", "999"), "--socket-mode"),
        (("--no-auth", "--socket-role", "root"), "no role 'root'"),
        (("--no-auth", "--policy", "walls"), "no policy 'walls'"),
        (("--no-auth", "--queue", "lifo"), "no queue 'lifo'"),
        (("--no-auth", "--rate", "0"), "rate must be above 0"),
        (("--no-auth", "--max-body", "much"), "much"),
        (("--no-auth", "--keep-history", "0s"), "more than 0 seconds"),
        (("--no-auth", "--fabric", "leaf-spine:4x4x8"), "another cluster"),
    ],
)
def test_what_it_refuses_before_it_listens(ropewalk, database, words, said):
    answer = ropewalk("serve", "--database", database, *words)
    assert (answer.code, said in answer.stderr) == (2, True), answer.stderr


def test_a_database_without_a_cluster_asks_for_one(ropewalk, tmp_path):
    answer = ropewalk("serve", "--database", tmp_path / "new.db", "--no-auth")
    assert (answer.code, "--cluster" in answer.stderr) == (2, True)
    answer = ropewalk("serve", "--database", tmp_path / "new.db", *SMALL)
    assert (answer.code, "there are no tokens" in answer.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_the_first_token_makes_the_database(ropewalk, tmp_path):
    database = tmp_path / "new" / "serve.db"
    assert ropewalk("serve", "token", "add", "--role", "operate", "--name", "me", "--database", database).code == 0
    assert database.exists()


def test_a_second_process_on_a_database_is_refused(ropewalk, database):
    from ropewalk.serve.store import open_store

    held = open_store(str(database))
    answer = ropewalk("serve", "--database", database, "--no-auth")
    held.close()
    assert (answer.code, "another process" in answer.stderr) == (2, True)


def test_what_differs_between_clusters_is_said():
    one, other = plant("leaf-spine:4x4x4", gpus_per_server=2), plant("leaf-spine:4x4x4", gpus_per_server=4)
    assert differences(one, one) == []
    assert differences(one, other) == ["servers 8 there, 4 here", "GPUs per server 2 there, 4 here"]
    renamed = replace(one, server_names=("a", *one.server_names[1:]))
    assert differences(one, renamed) == ["servers have other names (server0 there, a here)"]
    faster = replace(one, nic_bandwidth=50e9)
    assert differences(one, faster) == ["a NIC 100 Gbps there, 400 Gbps here"]


def test_a_cluster_is_replaced_only_where_nothing_runs(database):
    from ropewalk.cli.serve_options import ServeRunOptions
    from ropewalk.cli.serve_run import opened
    from ropewalk.serve.operation import End, Submit
    from ropewalk.serve.store import open_store

    run = ServeRunOptions(str(database), False, "1h", True, None, None, None, "easy")
    larger = plant("leaf-spine:4x4x8", gpus_per_server=2)
    store = open_store(str(database))
    writer = opened(store, None, run).start()
    writer.submit(Submit("a", 2)).result()
    writer.close()
    with pytest.raises(InputError, match="while jobs wait or run"):
        opened(store, larger, run)
    writer = opened(store, None, run).start()
    writer.submit(End("j1")).result()
    writer.close()
    assert opened(store, larger, run).read is not None
    assert store.load().plant.gpus == 32
    store.close()


def test_a_cluster_that_does_not_know_the_policy_replaces_nothing_unless_another_policy_is_given(database):
    from ropewalk.cli.serve_options import ServeRunOptions
    from ropewalk.cli.serve_run import opened
    from ropewalk.serve.operation import ChangePolicy
    from ropewalk.serve.store import open_store

    run = ServeRunOptions(str(database), False, "1h", True, None, None, None, "easy")
    rails = plant("rails:4x4x4", gpus_per_server=4)
    store = open_store(str(database))
    writer = opened(store, None, run).start()
    writer.submit(ChangePolicy("laas", queue="smallest")).result()
    writer.close()
    with pytest.raises(InputError, match="policy laas places servers below one leaf"):
        opened(store, rails, run)
    assert (store.load().plant.gpus, store.load().settings.policy) == (16, "laas")
    opened(store, rails, replace(run, policy="vclos"))
    kept = store.load()
    assert (kept.plant.rails, kept.settings.policy, kept.settings.queue) == (rails.rails, "vclos", "smallest")
    store.close()


def test_a_taken_port_is_one_sentence():
    (taken,) = bound(Listening(port=0))
    with pytest.raises(InputError, match=r"cannot listen on .* give another --port$"):
        bound(Listening(port=taken.getsockname()[1]))
    taken.close()


def test_an_address_of_another_machine_is_refused_with_one_of_this():
    with pytest.raises(InputError, match=r"cannot listen on 192\.0\.2\.1 .*: listen on an address of this machine"):
        bound(Listening("192.0.2.1", 0))


def test_others_may_connect_only_with_tokens_and_tls(tmp_path):
    open_to_all = Listening("0.0.0.0")
    with pytest.raises(InputError, match="in the clear"):
        check_openness(open_to_all, no_auth=False, tokens=1)
    with pytest.raises(InputError, match="has 2 tokens"):
        check_openness(Listening(), no_auth=True, tokens=2)
    check_openness(Listening("0.0.0.0", certificate=tmp_path, key=tmp_path), no_auth=False, tokens=1)
    check_openness(Listening(None, socket=tmp_path / "s"), no_auth=True, tokens=0)
    check_openness(Listening(None, socket=tmp_path / "s"), no_auth=False, tokens=0, socket_role="submit")
    with pytest.raises(InputError, match="every request over TCP would be refused"):
        check_openness(Listening(socket=tmp_path / "s"), no_auth=False, tokens=0, socket_role="submit")


def test_tokens_are_made_listed_and_revoked(ropewalk, database):
    made = ropewalk("serve", "token", "add", "--role", "submit", "--name", "ci", "--database", database)
    text = made.stdout.strip()
    assert (made.code, text.startswith("rw_")) == (0, True)
    listed = ropewalk("serve", "token", "list", "--database", database, "--json")
    assert [(one["name"], one["role"], one["revoked"]) for one in listed.json] == [("ci", "submit", None)]
    assert text.split("_", 2)[2] not in listed.stdout
    assert text.split("_", 2)[2].encode() not in database.read_bytes()
    assert ropewalk("serve", "token", "revoke", text, "--database", database).code == 0
    again = ropewalk("serve", "token", "revoke", text, "--database", database)
    assert (again.code, "token list" in again.stderr) == (2, True)
    assert "ci" in ropewalk("serve", "token", "list", "--database", database).stdout
    for role, name in (("root", "ci"), ("read", "a b"), ("read", "")):
        assert ropewalk("serve", "token", "add", "--role", role, "--name", name, "--database", database).code == 2


def test_a_backup_is_whole_and_never_written_over(ropewalk, database, tmp_path):
    copy = tmp_path / "copies" / "one.db"
    assert ropewalk("serve", "backup", copy, "--database", database).code == 0
    with sqlite3.connect(copy) as there:
        assert there.execute("select count(*) from plant").fetchone() == (1,)
    assert ropewalk("serve", "backup", copy, "--database", database).code == 2
    assert ropewalk("serve", "backup", tmp_path / "x.db", "--database", tmp_path / "none.db").code == 2
    refused = ropewalk("serve", "backup", tmp_path / "x.db", "--database", "postgresql://h/d")
    assert (refused.code, "pg_dump" in refused.stderr) == (2, True)
    assert sorted(path.name for path in copy.parent.iterdir()) == ["one.db"]


def test_the_unit_for_systemd_starts_what_was_asked_for(ropewalk):
    unit = ropewalk("serve", "systemd-unit", "--user", "rope", "--", "--socket", "/run/ropewalk/a b.sock").stdout
    lines = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
    assert lines["ExecStart"].endswith('serve run --socket "/run/ropewalk/a b.sock"')
    assert (lines["User"], lines["Restart"], lines["StateDirectory"]) == ("rope", "always", "ropewalk")
    assert lines["StartLimitIntervalSec"] == "0", "however fast it ends, it is started again"
    hidden = any(part.startswith(("/root", "/home")) for part in (sys.prefix, sys.base_prefix))
    assert lines["ProtectHome"] == ("read-only" if hidden else "yes")
    assert ropewalk("serve", "systemd-unit", "--", "--socket", "a\nb").code == 2


def test_a_unit_that_could_never_start_is_not_written(ropewalk):
    for options, said in (
        (("--clutser", "/etc/ropewalk/cluster.yaml"), "No such option"),
        (("--port", "many"), "--port"),
        (("--cluster", "my.yaml"), "units start in /: write /"),
        (("--socket", "run/ropewalk.sock"), "units start in /: write /"),
    ):
        answer = ropewalk("serve", "systemd-unit", "--user", "rope", "--", *options)
        assert (answer.code, answer.stdout) == (2, ""), options
        assert said in answer.stderr
    for cluster in ("dgx-h100:4", "64x8", "/etc/ropewalk/cluster.yaml"):
        assert ropewalk("serve", "systemd-unit", "--user", "rope", "--", "--cluster", cluster).code == 0


def test_options_of_a_unit_are_written_as_systemd_reads_them(ropewalk):
    options = ("--driver-option", "reach=ssh '$USER'@{device}", "--driver-option", '50% "of" C:\\')
    unit = ropewalk("serve", "systemd-unit", "--user", "rope", "--", *options).stdout
    assert """--driver-option "reach=ssh '$$USER'@{device}" --driver-option "50%% \\"of\\" C:\\\\"\n""" in unit


@pytest.mark.parametrize(
    ("content", "said"), [(b"\x07" * 8192, "not a database"), (None, "malformed: restore a backup")]
)
def test_a_file_that_is_no_database_is_refused_in_a_sentence(ropewalk, database, content, said):
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 3] if content is None else content)
    for command in (("serve", "--no-auth"), ("serve", "token", "list")):
        answer = ropewalk(*command, "--database", database)
        assert (answer.code, said in answer.stderr, "Traceback" in answer.stderr) == (2, True, False), answer.stderr


def test_databases_and_their_copies_are_for_their_owner_only(ropewalk, tmp_path):
    database, copy = tmp_path / "serve.db", tmp_path / "copy.db"
    (tmp_path / ".copy.db.part").touch(0o644)  # of a backup that was killed
    assert ropewalk("serve", "token", "add", "--role", "read", "--name", "me", "--database", database).code == 0
    assert ropewalk("serve", "backup", copy, "--database", database).code == 0
    assert [stat.S_IMODE(one.stat().st_mode) for one in (database, copy)] == [0o600, 0o600]


def test_where_the_extra_is_missing_it_says_how_to_get_it(ropewalk, database, monkeypatch):
    monkeypatch.setitem(sys.modules, "litestar", None)
    for name in [name for name in sys.modules if name.startswith("ropewalk.serve.http")]:
        monkeypatch.delitem(sys.modules, name)
    answer = ropewalk("serve", "--database", database, "--no-auth")
    assert (answer.code, 'pip install "ropewalk[serve]"' in answer.stderr) == (2, True)


def test_a_commit_that_fails_ends_the_service_with_a_sentence_and_a_line_of_the_log(database, tmp_path):
    """Somebody else's epoch is in the database: the next commit is refused, as on a full disk."""
    socket = tmp_path / "s"
    options = ("--database", str(database), "--host", "none", "--socket", str(socket), "--socket-role", "operate")
    command = [sys.executable, "-m", "ropewalk", "serve", *options]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        assert any(line.startswith("try: ") for line in iter(service.stdout.readline, ""))
        with closing(sqlite3.connect(database)) as other:
            other.execute("UPDATE meta SET value = '99' WHERE key = 'epoch'")
            other.commit()
        with pytest.raises(ServiceUnreachable):
            Client(f"unix:{socket}", sleep=lambda _: None).ask("POST", "/v1/jobs", {"name": "a", "gpus": 2})
        said = service.communicate()[1].splitlines()
    finally:
        service.kill()
        service.wait()
    assert service.returncode == 70
    assert said[-1].startswith("ropewalk serve: ended, the database cannot be written (another process has taken over")
    lines = [json.loads(line) for line in said if line.startswith("{")]
    assert [line["level"] for line in lines if line["event"] == "commit-failed"] == ["error"]
    assert not [line for line in said if line.startswith("Traceback")]
