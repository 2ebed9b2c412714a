"""Jobs belong to who has submitted them: the history knows who that was, as far as it is kept.

The column `owner` held the user, which nobody looks for by it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ropewalk.serve.encoding import decode, encode

revision = "0003"
down_revision = "0002"

JOB = sa.table("job", sa.column("id"), sa.column("owner"), sa.column("doc"))
EVENT = sa.table("event", sa.column("job"), sa.column("kind"), sa.column("doc"))
BEGINS = ("job-submitted", "job-adopted")
TOGETHER = 1000


def upgrade() -> None:
    connection = op.get_bind()
    connection.execute(sa.update(JOB).values(owner=""))
    begun = sa.select(JOB.c.id, JOB.c.doc, EVENT.c.doc).join(EVENT, EVENT.c.job == JOB.c.id)
    rows = connection.execute(begun.where(EVENT.c.kind.in_(BEGINS))).all()
    owned = [(job, decode(document), decode(event).get("actor", "")) for job, document, event in rows]
    changes = [
        {"of": job, "whose": actor, "kept": encode(document | {"owner": actor}).decode()}
        for job, document, actor in owned
        if actor
    ]
    change = (
        sa.update(JOB)
        .where(JOB.c.id == sa.bindparam("of"))
        .values(owner=sa.bindparam("whose"), doc=sa.bindparam("kept"))
    )
    for first in range(0, len(changes), TOGETHER):
        connection.execute(change, changes[first : first + TOGETHER])
