"""Statements of views on PostgreSQL have a timeout, downloads' have none, and a page says what happened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from typing import Any

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from core.database.threads import run_once
from svc_project.gate import caller_threads
from svc_project.gate.view_threads import ViewThreads
from tests.svc_project.test_database_away import asked
from usage.api.csv_stream import CsvDownload, DownloadSlots

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def timeout_of_statements() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


def sleeps(*_: Any, **__: Any) -> None:
    """A statement that takes far longer than the test waits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(100)")


async def in_a_view_thread() -> str:
    threads = ViewThreads()
    thread = threads.take()
    try:
        return await asyncio.wrap_future(thread.submit(timeout_of_statements))
    finally:
        threads.give_back(thread)
        await threads.close()


@pytest.mark.parametrize(("seconds", "shown"), [(1.5, "1500ms"), (0, "0")])
async def test_statements_of_a_view_thread_are_bounded(
    settings: Settings, seconds: float, shown: str
) -> None:
    settings.SVC_VIEW_STATEMENT_SECONDS = seconds
    assert await in_a_view_thread() == shown


async def test_without_a_bound_the_one_of_the_database_stays(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=7s")
    settings.SVC_VIEW_STATEMENT_SECONDS = 0
    assert await in_a_view_thread() == "7s"


async def test_statements_of_other_threads_and_of_downloads_are_not(settings: Settings) -> None:
    settings.SVC_VIEW_STATEMENT_SECONDS = 1.5
    assert await run_once(timeout_of_statements) == "0"

    def blocks() -> Generator[bytes, None, None]:
        yield timeout_of_statements().encode()

    download = CsvDownload(blocks(), DownloadSlots().take("acme"))
    assert [block async for block in download] == [b"0"]


@pytest.mark.parametrize(
    ("path", "slow"),
    [
        ("/console/login", "accounts.console.base.LoginView.get"),
        ("/v1/models", "accounts.keys.keyring.Keyring.authenticate_sync"),
    ],
)
def test_a_slow_statement_is_answered_503_without_a_traceback(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    path: str,
    slow: str,
) -> None:
    settings.SVC_VIEW_STATEMENT_SECONDS = 0.2
    monkeypatch.setattr(
        caller_threads, "strangers", caller_threads.CallerThreads(1, 10_000, 100_000)
    )
    monkeypatch.setattr(slow, sleeps)
    with caplog.at_level(logging.INFO):
        status, headers, body = asked(path, 1, authorization="Bearer x", accept="text/html")

    assert status == 503
    assert int(headers[b"retry-after"]) >= 1
    assert b"took too long" in body
    assert b"pg_sleep" not in body
    assert caplog.text.count("the database took too long") == 1
    assert not [each for each in caplog.records if each.exc_info]
