"""A PostgreSQL server of our own: in a temporary folder, on a Unix socket only, gone when the block ends."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TIMEOUT_S = 600


def missing() -> str | None:
    """Why there can be no server here; None where there can."""
    try:
        import psycopg  # noqa: F401
    except ModuleNotFoundError:
        return "psycopg is not installed: pip install 'ropewalk[postgres]'"
    if _program("initdb") is None or _program("postgres") is None:
        return "PostgreSQL is not installed: apt-get install postgresql"
    if os.geteuid() == 0 and not _has_user():
        return "PostgreSQL does not run as root, and there is no user postgres"
    return None


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of an empty database."""
    folder = Path(tempfile.mkdtemp(prefix="ropewalk-pg-"))
    folder.chmod(0o755)
    data, user = folder / "data", "postgres" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    try:
        _run([_program("initdb"), "-D", str(data), "-U", "ropewalk", "-A", "trust", "--no-locale", "-E", "UTF8"], user)
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c max_connections=40"
        control = [_program("pg_ctl"), "-D", str(data), "-w", "-t", str(TIMEOUT_S)]
        _run([*control, "-l", str(folder / "log"), "-o", options, "start"], user)
        try:
            yield f"postgresql+psycopg://ropewalk@/postgres?host={folder}"
        finally:
            _run([*control, "-m", "immediate", "stop"], user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str | None], user: str | None) -> None:
    words = [word for word in command if word is not None]
    done = subprocess.run(
        words, user=user, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr.decode()[-500:]}")


def _program(name: str) -> str | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = next((str(folder / name) for folder in folders if (folder / name).exists()), None)
    return found or shutil.which(name)


def _has_user() -> bool:
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return False
    return True
