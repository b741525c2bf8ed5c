"""A process of a release that is newer than the database's schema is not ready."""

from __future__ import annotations

import logging

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError
from django.db.migrations.recorder import MigrationRecorder

from core.monitoring.problems import Problem
from svc_project.serving import monitoring
from svc_project.serving.schema import Schema

pytestmark = pytest.mark.django_db(transaction=True)

LAST = {"app": "usage", "name": "0008_admissions"}


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Schema:
    schema = Schema()
    monkeypatch.setattr(monitoring, "schema", schema)
    return schema


def test_it_is_not_ready_until_the_migrations_have_run(
    looked: Schema, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_project.serving.schema._LOOK_SECONDS", 0.01)
    applied = MigrationRecorder.Migration.objects
    row = applied.get(**LAST)
    row.delete()
    try:
        with caplog.at_level(logging.ERROR):
            async_to_sync(looked.check)()
            async_to_sync(looked.check)()
        assert Problem.SCHEMA_OLDER_THAN_CODE in monitoring.unready_reasons()
        (line,) = caplog.messages
        assert (
            "1 migration(s) are missing, the first usage.0008_admissions. Run `svc migrate`" in line
        )
    finally:
        applied.create(**LAST)
    async_to_sync(looked.watch)()
    assert Problem.SCHEMA_OLDER_THAN_CODE not in monitoring.unready_reasons()


def test_a_newer_schema_is_no_reason(looked: Schema) -> None:
    row = MigrationRecorder.Migration.objects.create(app="usage", name="0999_later")
    try:
        async_to_sync(looked.watch)()
    finally:
        row.delete()
    assert not looked.is_older


def test_a_database_that_is_away_is_named_once(
    looked: Schema, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("svc_project.serving.schema.compare", away)
    with caplog.at_level(logging.ERROR):
        async_to_sync(looked.check)()
        async_to_sync(looked.check)()
    (line,) = caplog.messages
    assert line.endswith("is not available: connection refused")
    assert not looked.is_older
