"""The hash of a token has its salt inside, so that no column of its own is needed."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    with op.batch_alter_table("token") as token:
        token.drop_column("salt")
