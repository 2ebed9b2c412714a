"""The tables, the same in SQLite and PostgreSQL; `migrations/` makes them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, LargeBinary, MetaData, Table, Text

METADATA = MetaData()

META = Table(
    "meta", METADATA,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip
"""epoch, settings, counters."""

PLANT = Table(
    "plant", METADATA,
    Column("digest", Text, primary_key=True),
    Column("doc", Text, nullable=False),
)  # fmt: skip
"""The cluster, one row."""

DRAIN = Table(
    "drain", METADATA,
    Column("part", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("since", Float, nullable=False),
)  # fmt: skip
"""Parts out of service; kind is drained or failed."""

JOB = Table(
    "job", METADATA,
    Column("id", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("live", Boolean, nullable=False, index=True),
    Column("version", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("ended_at", Float, index=True),
    Column("doc", Text, nullable=False),
)  # fmt: skip
"""Every job in its latest version. Live are those that wait, run or keep links."""

IDEM = Table(
    "idem", METADATA,
    Column("key", Text, primary_key=True),
    Column("request_hash", Text, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Column("at", Float, nullable=False, index=True),
)  # fmt: skip
"""Answers by idempotency key."""

EVENT = Table(
    "event", METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("job", Text),
    Column("doc", Text, nullable=False),
)  # fmt: skip

RULE = Table(
    "rule", METADATA,
    Column("job", Text, primary_key=True),
    Column("generation", Integer, primary_key=True),
    Column("device", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("body", Text, nullable=False),
    Column("wanted", Boolean, nullable=False),
    Column("present", Boolean, nullable=False),
    Column("at", Float, nullable=False),
)  # fmt: skip

TOKEN = Table(
    "token", METADATA,
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
)  # fmt: skip
"""Of the secret only a slow hash with its salt is kept."""
