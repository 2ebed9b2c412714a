"""Alembic runs this: the connection comes from `upgrade_to`, which also holds the transaction."""

from __future__ import annotations

from alembic import context

from ropewalk.serve.store.tables import METADATA

if hasattr(context, "config"):  # not where the module is merely imported
    context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
    context.run_migrations()
