"""Database triggers that move a change stamp (``accounts.changes``), for migrations.

A trigger sees every change, those by plain SQL and by bulk statements too. Migrations that ran use these
functions, so their effect stays; a new rule is a new migration. A migration that alters a table on
SQLite remakes it and drops its triggers: end it with ``RunPython`` that creates them again. Tests of
each subject fail when that was forgotten.

On PostgreSQL a statement moves the stamp before it changes a row, and holds the stamp's row lock until
its transaction ends. So transactions commit in the order of their versions, and a reader that saw a
version has seen all lower ones. SQLite has one writer at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_STAMPS = "accounts_changestamp"
_VERBS = ("INSERT", "UPDATE", "DELETE")


def create_functions(editor: BaseDatabaseSchemaEditor) -> None:
    """Create what the triggers of all subjects call; nothing on SQLite, which has no functions."""
    if editor.connection.vendor == "sqlite":
        return
    _run(
        editor,
        f"""
        CREATE OR REPLACE FUNCTION move_change_stamp() RETURNS trigger LANGUAGE plpgsql
        SET search_path FROM CURRENT AS $$ BEGIN
            INSERT INTO {_STAMPS} AS stamp (subject, version, removals)
            VALUES (TG_ARGV[0], 1, TG_NARGS - 1)
            ON CONFLICT (subject) DO UPDATE SET
                version = stamp.version + 1, removals = stamp.removals + TG_NARGS - 1;
            RETURN NULL;
        END $$
        """,
    )
    _run(
        editor,
        f"""
        CREATE OR REPLACE FUNCTION set_change_version() RETURNS trigger LANGUAGE plpgsql
        SET search_path FROM CURRENT AS $$ BEGIN
            NEW.version := (SELECT version FROM {_STAMPS} WHERE subject = TG_ARGV[0]);
            RETURN NEW;
        END $$
        """,
    )


def drop_functions(editor: BaseDatabaseSchemaEditor) -> None:
    """Drop the functions, and with them every trigger on PostgreSQL."""
    if editor.connection.vendor != "sqlite":
        _run(editor, "DROP FUNCTION IF EXISTS move_change_stamp(), set_change_version() CASCADE")


def move_stamp(editor: BaseDatabaseSchemaEditor, subject: str, tables: Iterable[str]) -> None:
    """Let every statement that changes one of ``tables`` move the stamp of ``subject``."""
    for table in tables:
        if editor.connection.vendor != "sqlite":
            _statement_trigger(editor, f"{table}_changed", table, subject)
            continue
        for verb in _VERBS:
            _sqlite_trigger(
                editor, f"{table}_{verb.lower()}", f"{verb} ON {table}", [_moved(subject)]
            )


def leave_stamp(editor: BaseDatabaseSchemaEditor, tables: Iterable[str]) -> None:
    """Drop the triggers of ``move_stamp``."""
    for table in tables:
        if editor.connection.vendor != "sqlite":
            _run(editor, f"DROP TRIGGER IF EXISTS {table}_changed ON {table}")
            continue
        for verb in _VERBS:
            _run(editor, f"DROP TRIGGER IF EXISTS {table}_{verb.lower()}")


def set_versions(
    editor: BaseDatabaseSchemaEditor, subject: str, table: str, columns: Sequence[str]
) -> None:
    """Let an update of ``columns`` give the row the version to which it moves the stamp of ``subject``.

    The table has the columns ``id`` and ``version``.
    """
    if editor.connection.vendor == "sqlite":
        current = f"(SELECT version FROM {_STAMPS} WHERE subject = '{subject}')"
        changed = " OR ".join(f"NEW.{each} IS NOT OLD.{each}" for each in columns)
        # A row that was saved whole may bring back the version that it had when it was read.
        stale = f"(NEW.version IS NOT OLD.version AND NEW.version IS NOT {current})"
        _sqlite_trigger(
            editor,
            f"{table}_version",
            f"UPDATE ON {table} FOR EACH ROW WHEN {changed} OR {stale}",
            [_moved(subject), _versioned(table, subject)],
        )
        return
    every = (*columns, "version")
    verb = f"UPDATE OF {', '.join(every)}"
    _statement_trigger(editor, f"{table}_changed", table, subject, verb)
    old, new = (", ".join(f"{row}.{each}" for each in every) for row in ("OLD", "NEW"))
    _run(
        editor,
        f"CREATE OR REPLACE TRIGGER {table}_version BEFORE UPDATE ON {table} FOR EACH ROW "
        f"WHEN (({old}) IS DISTINCT FROM ({new})) "
        f"EXECUTE FUNCTION set_change_version('{subject}')",
    )


def set_new_versions(
    editor: BaseDatabaseSchemaEditor, subject: str, table: str, identity: Sequence[str]
) -> None:
    """Version the new rows of ``table`` too, and count rows that readers could not find by version.

    Those are deleted rows, and rows whose ``identity`` was changed. Readers then read everything.
    """
    if editor.connection.vendor == "sqlite":
        _set_new_versions_on_sqlite(editor, subject, table, identity)
        return
    _statement_trigger(editor, f"{table}_added", table, subject, "INSERT")
    _run(
        editor,
        f"CREATE OR REPLACE TRIGGER {table}_new_version BEFORE INSERT ON {table} FOR EACH ROW "
        f"EXECUTE FUNCTION set_change_version('{subject}')",
    )
    removed = f"EXECUTE FUNCTION move_change_stamp('{subject}', 'removed')"
    old, new = (", ".join(f"{row}.{each}" for each in identity) for row in ("OLD", "NEW"))
    _run(
        editor,
        f"CREATE OR REPLACE TRIGGER {table}_removed BEFORE DELETE OR TRUNCATE ON {table} "
        f"FOR EACH STATEMENT {removed}",
    )
    _run(
        editor,
        f"CREATE OR REPLACE TRIGGER {table}_identity AFTER UPDATE ON {table} FOR EACH ROW "
        f"WHEN (({old}) IS DISTINCT FROM ({new})) {removed}",
    )


def _set_new_versions_on_sqlite(
    editor: BaseDatabaseSchemaEditor, subject: str, table: str, identity: Sequence[str]
) -> None:
    changed = " OR ".join(f"NEW.{each} IS NOT OLD.{each}" for each in identity)
    _sqlite_trigger(
        editor,
        f"{table}_insert",
        f"INSERT ON {table}",
        [_moved(subject), _versioned(table, subject)],
    )
    _sqlite_trigger(editor, f"{table}_delete", f"DELETE ON {table}", [_moved(subject, 1)])
    _sqlite_trigger(
        editor,
        f"{table}_identity",
        f"UPDATE ON {table} FOR EACH ROW WHEN {changed}",
        [_moved(subject, 1)],
    )


def drop_version_triggers(editor: BaseDatabaseSchemaEditor, table: str) -> None:
    """Drop the triggers of ``set_versions`` and ``set_new_versions`` on SQLite."""
    if editor.connection.vendor == "sqlite":
        for name in ("version", "insert", "delete", "identity"):
            _run(editor, f"DROP TRIGGER IF EXISTS {table}_{name}")


def _statement_trigger(
    editor: BaseDatabaseSchemaEditor,
    name: str,
    table: str,
    subject: str,
    verbs: str = "INSERT OR UPDATE OR DELETE OR TRUNCATE",
) -> None:
    _run(
        editor,
        f"CREATE OR REPLACE TRIGGER {name} BEFORE {verbs} ON {table} FOR EACH STATEMENT "
        f"EXECUTE FUNCTION move_change_stamp('{subject}')",
    )


def _sqlite_trigger(
    editor: BaseDatabaseSchemaEditor, name: str, event: str, actions: Sequence[str]
) -> None:
    body = "; ".join(actions)
    _run(editor, f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {event} BEGIN {body}; END")


def _moved(subject: str, removals: int = 0) -> str:
    # Not an upsert: inside a trigger of INSERT OR REPLACE it would replace the stamp.
    return (
        f"INSERT INTO {_STAMPS} (subject, version, removals) SELECT '{subject}', 0, 0 "
        f"WHERE NOT EXISTS (SELECT 1 FROM {_STAMPS} WHERE subject = '{subject}'); "
        f"UPDATE {_STAMPS} SET version = version + 1, removals = removals + {removals} "
        f"WHERE subject = '{subject}'"
    )


def _versioned(table: str, subject: str) -> str:
    return (
        f"UPDATE {table} SET version = (SELECT version FROM {_STAMPS} WHERE subject = '{subject}') "
        "WHERE id = NEW.id"
    )


def _run(editor: BaseDatabaseSchemaEditor, statement: str) -> None:
    editor.execute(statement, params=None)
