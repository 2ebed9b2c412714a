"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table("meta", sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))
    op.create_table("plant", sa.Column("digest", sa.Text, primary_key=True), sa.Column("doc", sa.Text, nullable=False))
    op.create_table(
        "drain",
        sa.Column("part", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("since", sa.Float, nullable=False),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False, unique=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("live", sa.Boolean, nullable=False, index=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("ended_at", sa.Float, index=True),
        sa.Column("doc", sa.Text, nullable=False),
    )
    op.create_table(
        "idem",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("request_hash", sa.Text, nullable=False),
        sa.Column("answer", sa.LargeBinary, nullable=False),
        sa.Column("at", sa.Float, nullable=False, index=True),
    )
    op.create_table(
        "event",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Float, nullable=False, index=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("job", sa.Text),
        sa.Column("doc", sa.Text, nullable=False),
    )
    op.create_table(
        "rule",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("generation", sa.Integer, primary_key=True),
        sa.Column("device", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("wanted", sa.Boolean, nullable=False),
        sa.Column("present", sa.Boolean, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("salt", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("revoked", sa.Float),
    )
