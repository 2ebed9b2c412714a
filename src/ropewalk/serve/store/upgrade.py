"""The schema of a store: made when it is empty, upgraded when asked to, refused when it is from the future."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

from ropewalk.errors import ClusterError


def prepare(engine: Engine, *, upgrade: bool) -> None:
    """Bring the schema to what this version needs; a store that is older is only changed where `upgrade` says so."""
    with engine.connect() as connection:
        found, empty = revision(connection), not inspect(connection).get_table_names()
    newest, known = _newest(), _known()
    if found == newest:
        return
    name = engine.url.render_as_string(hide_password=True)
    if found is not None and found not in known:
        raise ClusterError(f"the store {name} was written by a newer version ({found}): install that version")
    if found is None and not empty:
        raise ClusterError(f"{name} holds tables of another application: name an empty database or another file")
    if not empty and not upgrade:
        raise ClusterError(
            f"the store {name} is of an older version ({found}, this one needs {newest}): make a backup, then start "
            "with --upgrade"
        )
    upgrade_to(engine, newest)


def upgrade_to(engine: Engine, target: str) -> None:
    """Run the migrations up to a revision, all in one transaction."""
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, target)


def revision(connection: Connection) -> str | None:
    """Which revision a store has; None where it has none."""
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "ropewalk.serve.store:migrations")
    return config


def _newest() -> str:
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def _known() -> set[str]:
    return {one.revision for one in ScriptDirectory.from_config(_config()).walk_revisions()}
