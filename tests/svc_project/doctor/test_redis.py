"""What `svc doctor` says of a Redis that answers."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from svc_project.doctor import servers
from svc_project.doctor.findings import Finding, State
from tests.support.servers.redis_store import REDIS_URL


@pytest.mark.redis
def test_one_that_answers_is_fine(settings: Settings) -> None:
    settings.REDIS_URL = REDIS_URL
    (found,) = servers.redis_store()
    assert found.state is State.OK, found
    assert "version " in found.words


def test_several_workers_need_one(settings: Settings) -> None:
    settings.REDIS_URL, settings.SVC_WORKERS = "", 1
    assert [each.state for each in servers.redis_store()] == [State.OK]
    settings.SVC_WORKERS = 2
    assert [each.state for each in servers.redis_store()] == [State.FAULT]


class Told:
    """A Redis that says of itself what a test wants."""

    def __init__(self, ahead: float, **told: Any) -> None:
        self._ahead = ahead
        self._told = {"redis_version": "7.2.4", "maxmemory": 0, "maxmemory_policy": "noeviction"}
        self._told |= told

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def connection_pool(self) -> Any:
        return type("Pool", (), {"connection_kwargs": {"host": "cache", "port": 6380}})

    def time(self) -> tuple[int, int]:
        return int(time.time() + self._ahead), 0

    def info(self) -> dict[str, Any]:
        return self._told


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Told(0.0, redis_version="5.0.14"), "it is Redis 5.0.14."),
        (Told(0.0, maxmemory=1, maxmemory_policy="allkeys-lru"), "its policy is allkeys-lru"),
        (Told(60.0), "s apart"),
        (Told(-60.0), "s apart"),
    ],
)
def test_what_limits_cannot_rely_on_is_a_warning(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, told: Told, words: str
) -> None:
    settings.REDIS_URL = "redis://cache:6380"
    monkeypatch.setattr("redis.Redis.from_url", lambda *_, **__: told)
    found: list[Finding] = list(servers.redis_store())
    assert [each.state for each in found] == [State.WARNING]
    assert found[0].words.startswith("Redis at cache, port 6380: ")
    assert words in found[0].words
    assert found[0].todo
