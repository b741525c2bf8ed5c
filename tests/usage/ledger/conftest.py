"""Fixtures of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from pytest_django.fixtures import Settings

from usage.ledger import rows
from usage.receipts import AnyReceipt


@pytest.fixture(autouse=True)
def journal_directory(settings: Settings, tmp_path: Path) -> Path:
    settings.SVC_DATA_DIR = tmp_path
    return tmp_path / "journal"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The request ids of each batch that the database accepted."""
    batches: list[list[str]] = []
    insert = rows.insert

    def watched(receipts: Sequence[AnyReceipt], **options: Any) -> int:
        new = insert(receipts, **options)
        batches.append([each.request_id for each in receipts])
        return new

    monkeypatch.setattr(rows, "insert", watched)
    return batches


@pytest.fixture
def full_database(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A database that can be read but accepts no rows while ``full``."""
    state = {"full": False}
    insert = rows.insert

    def perhaps(receipts: Sequence[AnyReceipt], **options: Any) -> int:
        if state["full"]:
            raise OperationalError("database or disk is full")
        return insert(receipts, **options)

    monkeypatch.setattr(rows, "insert", perhaps)
    return state
