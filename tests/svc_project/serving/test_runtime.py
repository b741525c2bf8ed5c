"""The background work of a serving process."""

from __future__ import annotations

import logging

import pytest

from svc_project.serving.runtime import Runtime
from tests.support.until import until_async


async def test_what_ends_background_work_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise OSError("no descriptors")

    with caplog.at_level(logging.ERROR):
        Runtime()._run_beside(work())
        await until_async(lambda: caplog.records)
    assert "background work ended" in caplog.text
    assert "no descriptors" in caplog.text
