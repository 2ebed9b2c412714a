"""Tokens as the store keeps them: read and managed beside the writer, by short transactions of their own."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import insert, select, update

from ropewalk.errors import ClusterError
from ropewalk.records import record
from ropewalk.serve.store.store import Store
from ropewalk.serve.store.tables import TOKEN
from ropewalk.serve.store.unusable import reading


@dataclass(frozen=True)
class Token:
    """A token without its secret, of which only a salted slow hash is kept."""

    id: str
    hash: str
    role: str
    name: str
    created: float
    revoked: float | None = None


_COLUMNS = (TOKEN.c.id, TOKEN.c.hash, TOKEN.c.role, TOKEN.c.name, TOKEN.c.created, TOKEN.c.revoked)


def tokens(store: Store) -> list[Token]:
    """All of them, revoked ones too, the oldest first."""
    with reading(store.engine), store.engine.connect() as connection:
        rows = connection.execute(select(*_COLUMNS).order_by(TOKEN.c.created, TOKEN.c.id)).all()
        return [record(Token, dict(row._mapping), "token", ClusterError) for row in rows]


def add_token(store: Store, token: Token) -> None:
    with (
        reading(store.engine),
        store.engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        connection.execute(insert(TOKEN), asdict(token))


def revoke_token(store: Store, token_id: str, at: float) -> bool:
    """Whether there was such a token that still worked."""
    changed = update(TOKEN).where(TOKEN.c.id == token_id, TOKEN.c.revoked.is_(None)).values(revoked=at)
    with (
        reading(store.engine),
        store.engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        return connection.execute(changed).rowcount == 1
