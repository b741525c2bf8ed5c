"""The cheap part of a backend's test, repeated by upkeep: it connects and lists models, and no model answers.

Nothing is computed for it: the server gets ``GET /models``, and where it has no such list one chat request
without messages, which it refuses. Each due test is claimed in the database, so one process of a
deployment runs it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from core import clock
from core.database.threads import run_once
from inference.models import Backend, BackendTest
from inference.models.last_tests import LONGEST_WORDS, Verdict
from inference.probe.client import ProbeError, Target
from inference.probe.connect import KeyUnreadable, deployed, reach, target_of

log = logging.getLogger(__name__)

EVERY: Final = timedelta(minutes=30)
"""How long after a test, or its claim, the next is due; upkeep runs every ten minutes."""
SECONDS: Final = 20.0
"""How long the test of one server may take."""
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Due:
    """A claimed test. ``target`` is None where the key cannot be read, for the reason in ``words``."""

    backend_id: uuid.UUID
    target: Target | None
    served: Sequence[str]
    words: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What a test found."""

    result: Verdict
    words: str


async def retest_due() -> None:
    """Test every backend that is due, and keep what was found. Raises ``django.db.Error``."""
    claimed = await run_once(claim)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def test(due: Due) -> None:
        async with slots:
            found = await glance(due)
        await run_once(partial(keep, due.backend_id, found))

    await asyncio.gather(*map(test, claimed))


def claim() -> list[Due]:
    """Claim the due tests of enabled backends; no other process claims them before ``EVERY``."""
    now = clock.now()
    enabled = Backend.objects.filter(enabled=True)
    BackendTest.objects.bulk_create(
        [BackendTest(backend=row, due_at=now) for row in enabled.filter(last_test=None)],
        ignore_conflicts=True,
    )
    due = BackendTest.objects.filter(backend__enabled=True, due_at__lte=now)
    return [
        _due(test.backend)
        for test in due.select_related("backend")
        if BackendTest.objects.filter(pk=test.pk, due_at=test.due_at).update(due_at=now + EVERY)
    ]


def _due(row: Backend) -> Due:
    try:
        return Due(row.pk, target_of(row, SECONDS), deployed(row))
    except KeyUnreadable as error:
        return Due(row.pk, None, (), str(error))


async def glance(due: Due) -> Found:
    """Connect to a claimed backend and compare its list of models with those that it serves here."""
    if due.target is None:
        return Found(Verdict.FAILED, due.words)
    try:
        async with asyncio.timeout(SECONDS):
            connected = await reach(due.target)
    except ProbeError as error:
        return Found(Verdict.FAILED, str(error))
    except Exception as error:  # whatever a server sends, upkeep goes on
        if not isinstance(error, TimeoutError):
            log.warning("the test of a backend ended: %s", type(error).__name__)
            return Found(Verdict.FAILED, "its answer cannot be read")
        return Found(Verdict.FAILED, f"it did not answer within {SECONDS:.0f} s")
    missing = [name for name in due.served if name not in connected.models]
    if connected.lists and missing:
        return Found(
            Verdict.UNLISTED, f"{connected.words}; its list does not name {', '.join(missing)}"
        )
    return Found(Verdict.PASSED, connected.words)


def keep(backend_id: uuid.UUID, found: Found) -> None:
    """Keep ``found`` as the last test of a backend, where that still exists."""
    now = clock.now()
    if Backend.objects.filter(pk=backend_id).exists():
        BackendTest.objects.update_or_create(
            backend_id=backend_id,
            defaults={
                "tested_at": now,
                "due_at": now + EVERY,
                "result": found.result,
                "words": found.words[:LONGEST_WORDS],
            },
        )
