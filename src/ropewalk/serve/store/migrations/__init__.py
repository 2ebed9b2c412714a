"""How the schema has changed, one file a revision, run by Alembic."""
