"""`ropewalk serve token add|list|revoke`: who may ask the service what."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import typer

from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, print_json, print_whole
from ropewalk.cli.serve_options import StoreOptions
from ropewalk.errors import InputError


@with_options
def add_command(
    role: str = typer.Option(..., help="read, submit (and read) or operate (everything)."),
    name: str = typer.Option(..., help="Owner of the token, shown in logs and in the history."),
    json: bool = JSON,
    *,
    store: StoreOptions,
) -> None:
    """Create a token and print it once: the database keeps only a salted hash.

    Example: `ropewalk serve token add --role submit --name ci`
    """
    from ropewalk.serve.http.tokens import new_token
    from ropewalk.serve.store import open_store
    from ropewalk.serve.store.tokens import Token, add_token

    made = new_token(name, role)
    if store.is_new():
        open_store(store.url()).close()
    opened = open_store(store.url(), writer=False)
    try:
        add_token(opened, Token(made.id, made.hash, made.role, made.name, time.time()))
    finally:
        opened.close()
    if json:
        print_json({"id": made.id, "role": role, "name": name, "token": made.text})
        return
    typer.echo(made.text)
    typer.echo(f"token {made.id} of {name}, role {role}: shown only once", err=True)


@with_options
def list_command(json: bool = JSON, *, store: StoreOptions) -> None:
    """List all tokens, without their secrets."""
    from rich import box
    from rich.table import Table

    from ropewalk.serve.store import open_store
    from ropewalk.serve.store.tokens import tokens

    opened = open_store(store.url(), writer=False)
    try:
        found = tokens(opened)
    finally:
        opened.close()
    if json:
        print_json([{"id": one.id, "name": one.name, "role": one.role, "created": one.created, "revoked": one.revoked}
                    for one in found])  # fmt: skip
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("id", "name", "role", "made", "revoked"):
        table.add_column(column, no_wrap=True)
    for one in found:
        table.add_row(one.id, one.name, one.role, _day(one.created), "" if one.revoked is None else _day(one.revoked))
    print_whole(table)


@with_options
def revoke_command(token: str = typer.Argument(help="Token id."), *, store: StoreOptions) -> None:
    """Revoke a token: a running service refuses it within a second."""
    from ropewalk.serve.store import open_store
    from ropewalk.serve.store.tokens import revoke_token

    number = token.split("_")[1] if token.startswith("rw_") and token.count("_") >= 2 else token
    opened = open_store(store.url(), writer=False)
    try:
        done = revoke_token(opened, number, time.time())
    finally:
        opened.close()
    if not done:
        raise InputError(f"no token {number!r} is active: see `ropewalk serve token list`")
    typer.echo(f"token {number} is revoked")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
