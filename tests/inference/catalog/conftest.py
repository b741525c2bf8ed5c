"""Fixtures of the catalog."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.support.cases.catalog_files import (
    Load,
)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(content: str) -> list[str]:
        path = tmp_path / "catalog.toml"
        path.write_text(content, encoding="utf-8")
        out = StringIO()
        call_command("load_catalog", path, stdout=out)
        return out.getvalue().splitlines()

    return load
