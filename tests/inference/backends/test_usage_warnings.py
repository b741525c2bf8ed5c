"""Doubtful usage is logged by backend, once an hour."""

from __future__ import annotations

import time

import pytest

from inference.backends.pool import BackendPool
from tests.inference.backends.test_connections import BACKEND


def test_each_kind_of_doubtful_usage_is_logged_once_an_hour(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, gpu = BackendPool(), BACKEND
    begin = time.monotonic()

    for seconds in (0, 1, 3599, 3601):
        monkeypatch.setattr("inference.backends.pool.time.monotonic", lambda at=seconds: begin + at)
        pool.count_unreported(gpu, 10)
        pool.count_improbable(gpu, "output_cap")
        pool.count_improbable(gpu, "context")

    for kind in ("did not report", "than the request's output cap", "than the model's context"):
        assert sum(BACKEND.name in line and kind in line for line in caplog.messages) == 2
    (view,) = pool.views([gpu], [])
    assert (view.unreported_tokens, view.improbable_reports) == (40, 8)
