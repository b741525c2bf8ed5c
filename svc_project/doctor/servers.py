"""Whether Redis, and the model and speech servers of the catalog, answer this host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import redis
from django.conf import settings

from core import clock, variables
from core.database.clocks import LARGEST_DIFFERENCE
from inference.models import Backend
from inference.probe.client import ErrorStatus, ProbeClient, ProbeError, Target
from inference.probe.connect import KeyUnreadable, reach, target_of
from speech.models import SpeechBackend
from svc_project.doctor.findings import Finding, State

_REDIS_SECONDS: Final = 3.0
_BACKEND_SECONDS: Final = 5.0
_OLDEST_REDIS: Final = 6


def redis_store() -> Iterator[Finding]:
    """What Redis is, whether it may drop what it keeps, and its clock."""
    if not settings.REDIS_URL:
        state = State.FAULT if settings.SVC_WORKERS > 1 else State.OK
        todo = "Set REDIS_URL, or SVC_WORKERS=1." if settings.SVC_WORKERS > 1 else ""
        yield Finding(state, "redis", "none: each process keeps limits of its own", todo)
        return
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=_REDIS_SECONDS, socket_timeout=_REDIS_SECONDS
    )
    try:
        with client:
            yield from _redis(client)
    except redis.RedisError as error:
        yield Finding(
            State.FAULT,
            "redis",
            f"{_place(client)} does not answer: {error}",
            "Start it, or correct REDIS_URL; until then each worker keeps its share of every limit.",
        )


def _place(client: redis.Redis) -> str:
    given = client.connection_pool.connection_kwargs
    where = given.get("path") or f"{given.get('host', 'localhost')}, port {given.get('port', 6379)}"
    return f"Redis at {where}"


def _redis(client: redis.Redis) -> Iterator[Finding]:
    earliest, began = clock.now(), time.perf_counter()
    seconds, microseconds = client.time()
    took = time.perf_counter() - began
    ahead = earliest.timestamp() - (seconds + microseconds / 1e6)
    apart = ahead if ahead > 0 else min(0.0, ahead + took)
    told = client.info()
    version, policy = str(told["redis_version"]), str(told.get("maxmemory_policy", ""))
    found = []
    if int(version.partition(".")[0]) < _OLDEST_REDIS:
        found.append((f"it is Redis {version}.", f"Use {_OLDEST_REDIS} or newer."))
    if told.get("maxmemory") and policy != "noeviction":
        words = (
            f"its policy is {policy}: with its memory full it drops limits, which then begin anew."
        )
        found.append((words, "Set maxmemory-policy noeviction."))
    if abs(apart) > LARGEST_DIFFERENCE:
        words = f"its clock and that of this host are {abs(apart):.1f} s apart."
        found.append((words, "Let both follow a time server (chrony, systemd-timesyncd)."))
    for words, todo in found:
        yield Finding(State.WARNING, "redis", f"{_place(client)}: {words}", todo)
    if not found:
        yield Finding(State.OK, "redis", f"{_place(client)}: version {version}, policy {policy}")


def backends() -> Iterator[Finding]:
    """Each model and speech server that is switched on: its key, and whether its address answers."""
    wanted: list[tuple[str, Target, bool]] = []
    for row in Backend.objects.filter(enabled=True).order_by("name"):
        try:
            wanted.append((row.name, target_of(row, _BACKEND_SECONDS), True))
        except KeyUnreadable as error:
            yield _backend(row.name, str(error))
    for voice_server in SpeechBackend.objects.filter(enabled=True).order_by("name"):
        if problem := variables.problem(voice_server.api_key_env):
            yield _backend(voice_server.name, problem)
        else:
            target = Target(base_url=voice_server.base_url.rstrip("/"), seconds=_BACKEND_SECONDS)
            wanted.append((voice_server.name, target, False))
    yield from asyncio.run(_ask(wanted))


async def _ask(wanted: list[tuple[str, Target, bool]]) -> list[Finding]:
    return await asyncio.gather(*(_answer(*each) for each in wanted))


async def _answer(name: str, target: Target, has_models: bool) -> Finding:
    try:
        words = (await reach(target)).words if has_models else await _touch(target)
    except ProbeError as error:
        return _backend(name, f"{target.base_url}: {error}")
    return Finding(State.OK, "backend", f"{name}: {words}")


async def _touch(target: Target) -> str:
    """Ask a speech server for its address, which says nothing but that it is there."""
    async with ProbeClient(target) as client:
        try:
            await client.get(target.base_url)
        except ErrorStatus:
            pass  # the address itself need not be one of its endpoints
        except ProbeError as error:
            if "no JSON" not in str(error) and "redirects" not in str(error):
                raise
    return f"it answers at {target.base_url}"


def _backend(name: str, words: str) -> Finding:
    todo = "Correct it, or switch the backend off in the catalog."
    return Finding(State.FAULT, "backend", f"{name}: {words}", todo)
