"""Databases that are damaged, locked or of somebody else, in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError

from ropewalk.errors import ClusterError

DATABASE_ERRORS = (DatabaseError, sqlite3.DatabaseError)
REMEDIES = {
    "not a database": "name a database of ropewalk, or a file that does not exist yet",
    "malformed": "restore a backup",
    "readonly": "check who may write the file and its folder",
    "unable to open": "check who may write the file and its folder",
    "locked": "end the program that holds it, such as a sqlite3 shell",
    "full": "make room on the disk",
}
"""What helps, by words of SQLite."""


@contextmanager
def reading(engine: Engine) -> Iterator[None]:
    """Refuse what is damaged: pages of the file, or documents in it."""
    try:
        yield
    except DATABASE_ERRORS as problem:
        raise unusable(engine, problem) from None
    except (KeyError, TypeError, ValueError, AttributeError, ClusterError) as problem:
        fact = str(problem) if isinstance(problem, ClusterError) else repr(problem)
        raise ClusterError(f"the store {_name(engine)} is damaged ({fact[:200]}): restore a backup") from None


def unusable(engine: Engine, problem: BaseException) -> ClusterError:
    """What a database says when it cannot be used, and what helps."""
    cause = problem.orig if isinstance(problem, DatabaseError) else problem
    fact = next(iter(str(cause or "").strip().splitlines()), "") or "it does not answer"
    known = (remedy for words, remedy in REMEDIES.items() if words in fact)
    remedy = next(known, "check that it exists and may be written to")
    return ClusterError(f"the store {_name(engine)} cannot be used: {fact}: {remedy}")


def _name(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)
