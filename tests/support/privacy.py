"""Words that must be kept nowhere, and where to look for them."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from django.db import connection


def canary(name: str) -> str:
    """A word that occurs nowhere else."""
    return f"{name}{uuid.uuid4().hex}"


def tables() -> str:
    """Every row of every table, as text."""
    with connection.cursor() as cursor:
        found = []
        for name in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{name}"')
            found += [json.dumps(row, default=str) for row in cursor.fetchall()]
    return "\n".join(found)


def kept(directory: Path) -> dict[Path, bytes]:
    """Every file of a gateway that works in ``directory``, its log and its journal too, and every table."""
    files = {
        path.relative_to(directory): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
    assert Path("gateway.log") in files
    assert any(path.match("journal/*.log") for path in files)
    return {**files, Path("every table"): tables().encode()}


def holders(kept: dict[Path, bytes], secret: str) -> list[Path]:
    """What has ``secret`` in it."""
    return [path for path, content in kept.items() if secret.encode() in content]
