"""`ropewalk serve backup` and `systemd-unit`: what an operator needs beside the service."""

from __future__ import annotations

import getpass
import re
import shutil
import sys
from pathlib import Path

import typer

from ropewalk.cli.cluster_plant import is_file_name
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.serve_options import StoreOptions
from ropewalk.errors import InputError

ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}")
"""Names of users that systemd takes, and numbers."""
HOMES = ("/home", "/root", "/run/user")
"""What `ProtectHome=yes` hides: a unit that runs an installation in there may read it."""
UNIT = """[Unit]
Description=ropewalk serve: the controller of the cluster
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart={command}
User={user}
StateDirectory=ropewalk
RuntimeDirectory=ropewalk
CacheDirectory=ropewalk
Environment=XDG_STATE_HOME=%S NUMBA_CACHE_DIR=%C/ropewalk
EnvironmentFile=-/etc/ropewalk/serve.env
Restart=always
RestartSec=1
TimeoutStopSec=30
LimitNOFILE=65536
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome={home}
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
LockPersonality=yes
CapabilityBoundingSet=
UMask=0077

[Install]
WantedBy=multi-user.target
"""


@with_options
def backup_command(
    to: Path = typer.Argument(metavar="FILE", help="A file that does not exist yet."), *, store: StoreOptions
) -> None:
    """Copy a SQLite database, completely and consistently, while the service runs.

    To restore: stop the service, replace the database by the copy, remove FILE-wal and FILE-shm next to it if they
    exist, and start the service. For PostgreSQL use pg_dump.

    Example: `ropewalk serve backup /backups/ropewalk-monday.db`
    """
    from ropewalk.serve.store.backup import back_up

    size = back_up(store.url(), to)
    typer.echo(f"backup: {to} ({size} bytes)")


def systemd_unit_command(
    options: list[str] = typer.Argument(None, metavar="[-- OPTIONS]", help="Options of `ropewalk serve`."),
    user: str | None = typer.Option(None, help="User of the unit.  [default: you]"),
) -> None:
    """Print a systemd unit that starts the service at boot and restarts it whenever it ends.

    Example: `ropewalk serve systemd-unit --user ropewalk -- --socket /run/ropewalk/ropewalk.sock --socket-role submit`
    """
    account = user or getpass.getuser()
    if ACCOUNT.fullmatch(account) is None:
        raise InputError(f"{account!r} is not the name of a user: give one such as ropewalk")
    _check_options(options or [])
    binary = shutil.which("ropewalk") or str(Path(sys.executable).with_name("ropewalk"))
    command = " ".join(map(_quoted, [binary, "serve", "run", *(options or [])]))
    needs = (Path(binary).resolve(), Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())
    at_home = any(path.is_relative_to(home) for path in needs for home in HOMES)
    typer.echo(UNIT.format(command=command, user=account, home="read-only" if at_home else "yes"), nl=False)


def _check_options(options: list[str]) -> None:
    """Refuse what the service would refuse at every start, for ever: unknown options, and paths that are relative."""
    from ropewalk.cli.commands import SERVE

    run = SERVE["run"].loaded("run")
    parsed = run.make_context("ropewalk serve run", list(options)).params
    paths = [value for value in parsed.values() if isinstance(value, Path)]
    if parsed["cluster"] is not None and is_file_name(parsed["cluster"]):
        paths.append(Path(parsed["cluster"]))
    for path in paths:
        if not path.is_absolute():
            raise InputError(f"{path} is a relative path, and units start in /: write {path.absolute()}")


def _quoted(word: str) -> str:
    """A word of a command line as systemd reads it.

    >>> _quoted("--port"), _quoted("ssh root@{device}"), _quoted("100%")
    ('--port', '"ssh root@{device}"', '100%%')
    """
    if not word.isprintable():
        raise InputError(f"options of a unit cannot have control characters, as in {word!r}: leave them out")
    literal = word.replace("%", "%%").replace("$", "$$")
    if word and not set(word) & set(" \\\"';"):
        return literal
    escaped = literal.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
