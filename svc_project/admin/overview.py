"""What the index of the admin shows of the running system, for those who may see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from accounts.models import Organization, User
from core import clock
from core.monitoring.problems import PROBLEMS_STATS, WORDS, Problem
from core.monitoring.worker_stats import worker_stats
from inference.backends.pooled import BackendView
from inference.models import BackendTest, ModelEntry
from inference.models.last_tests import Verdict
from inference.probe.publishing import RIGHTS
from inference.serving.monitoring import STATS_NAME
from svc_project.admin.attention import Attention, attention
from usage.queries.everyone import By, Entry, endings_since, sums, throttled
from usage.queries.outcomes import Endings
from usage.queries.periods import Period

ENDS_WITHIN: Final = timedelta(days=60)
LATELY: Final = timedelta(hours=1)
WEEK: Final = timedelta(days=7)
_MOST_TOP: Final = 5
_MOST_FAILED: Final = 20

Viewer = User | AnonymousUser


@dataclass(frozen=True, slots=True)
class Traffic:
    """Chats since the beginning of the last hour, and the organizations that spent most in a week."""

    since: datetime
    latest: Endings
    failed_rows: str
    throttled: int
    top: Sequence[tuple[str, str, Entry]]
    """Name, address of the customer's page, and sums of seven days."""


@dataclass(frozen=True, slots=True)
class Backends:
    """Chat backends as the workers of this host see them."""

    count: int
    running: int
    waiting: int
    ejected: Sequence[tuple[str, str]]
    """Name and admin page of those that a worker leaves out."""


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A model server whose last test failed, and the page that tests it again."""

    name: str
    address: str
    words: str
    tested_at: datetime


@dataclass(frozen=True, slots=True)
class Ending:
    """A model that ends soon; ``requests`` are those of the last seven days."""

    identifier: str
    address: str
    shutdown_at: datetime
    days: int
    successor: str
    requests: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Each part is None for a user without the right to see it."""

    traffic: Traffic | None
    backends: Backends | None
    ending: Sequence[Ending] | None
    attention: Attention | None
    problems: Sequence[str]
    """What the workers of this host report, in words."""
    failed_tests: Sequence[FailedTest]
    may_add_server: bool

    @property
    def is_alarmed(self) -> bool:
        return bool(self.problems or self.failed_tests)


def overview(viewer: Viewer) -> Overview:
    """Read the overview for ``viewer``. Raises ``django.db.Error``."""
    now = clock.now()
    week = Period(clock.hour_of(now - WEEK), clock.hour_of(now) + timedelta(hours=1))
    sees_usage = viewer.has_perm("usage.view_usagerow")
    return Overview(
        traffic=_traffic(now, week) if sees_usage else None,
        backends=_backends() if viewer.has_perm("inference.view_backend") else None,
        ending=_ending(now, week) if viewer.has_perm("inference.view_modelentry") else None,
        attention=attention(now) if sees_usage else None,
        problems=_problems(),
        failed_tests=_failed_tests() if viewer.has_perm("inference.view_backend") else (),
        may_add_server=viewer.has_perms(RIGHTS),
    )


def _traffic(now: datetime, week: Period) -> Traffic:
    since = clock.hour_of(now - LATELY)
    failed = urlencode({"outcome": "failed", "occurred_at__gte": since.isoformat()})
    top = sums(week, (By.ORGANIZATION,))[:_MOST_TOP]
    names = dict(
        Organization.objects.filter(pk__in=[entry.key[0] for entry in top]).values_list(
            "pk", "name"
        )
    )
    named = {str(pk): name for pk, name in names.items()}
    return Traffic(
        since=since,
        latest=endings_since(since),
        failed_rows=f"{reverse('admin:usage_usagerow_changelist')}?{failed}",
        throttled=throttled(since),
        top=[
            (
                named.get(entry.key[0], entry.key[0]),
                reverse("admin:customer", args=entry.key),
                entry,
            )
            for entry in top
        ],
    )


def _backends() -> Backends:
    views = [
        view
        for _, all_views in worker_stats.read(STATS_NAME, list[BackendView])
        for view in all_views
    ]
    ejected = {view.id: view.name for view in views if view.ejected}
    return Backends(
        count=len({view.id for view in views}),
        running=sum(view.inflight for view in views),
        waiting=sum(view.waiting for view in views),
        ejected=[
            (name, reverse("admin:inference_backend_change", args=[pk]))
            for pk, name in sorted(ejected.items(), key=lambda each: each[1])
        ],
    )


def _failed_tests() -> list[FailedTest]:
    tests = BackendTest.objects.filter(backend__enabled=True, result=Verdict.FAILED)
    return [
        FailedTest(
            test.backend.name,
            reverse("admin:inference_backend_test", args=[test.backend_id]),
            test.words,
            test.tested_at,
        )
        for test in tests.select_related("backend").order_by("backend__name")[:_MOST_FAILED]
        if test.tested_at is not None
    ]


def _ending(now: datetime, week: Period) -> list[Ending]:
    entries = list(
        ModelEntry.objects.filter(shutdown_at__gt=now, shutdown_at__lt=now + ENDS_WITHIN)
        .select_related("superseded_by")
        .order_by("shutdown_at")
    )
    if not entries:
        return []
    used = {entry.key[0]: entry.requests for entry in reversed(sums(week, (By.MODEL,)))}
    return [
        Ending(
            identifier=entry.identifier,
            address=reverse("admin:inference_modelentry_change", args=[entry.pk]),
            shutdown_at=entry.shutdown_at,
            days=(entry.shutdown_at - now).days,
            successor=str(entry.superseded_by or ""),
            requests=used.get(entry.identifier, 0),
        )
        for entry in entries
        if entry.shutdown_at is not None
    ]


def _problems() -> list[str]:
    found: dict[Problem, list[int | str]] = {}
    for worker, problems in worker_stats.read(PROBLEMS_STATS, list[Problem]):
        for problem in problems:
            found.setdefault(problem, []).append(worker)
    return [
        f"{WORDS[problem]} (worker {', '.join(map(str, workers))})"
        for problem, workers in sorted(found.items())
    ]
