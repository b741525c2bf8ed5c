"""The admin pages of model servers: where they are, what they serve, how they are, and a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from accounts.audit import trail
from core import variables
from core.admin.backends import Step
from core.admin.columns import NOTHING, Tone, badge
from core.monitoring.worker_stats import worker_stats
from inference.admin import backend_tests
from inference.admin.add_server import AddServerAdmin
from inference.backends.pooled import BackendView
from inference.models import Backend, Deployment
from inference.models.last_tests import Verdict
from inference.probe import retest
from inference.probe.retest import Found
from inference.serving.draining import left_on
from inference.serving.monitoring import STATS_NAME

if TYPE_CHECKING:  # generic in the stubs only
    DeploymentTabularInline = admin.TabularInline[Deployment, Backend]
else:
    DeploymentTabularInline = admin.TabularInline


class DeploymentInline(DeploymentTabularInline):
    model = Deployment
    extra = 0
    autocomplete_fields = ("weights",)
    verbose_name_plural = "weights that it serves"


@admin.register(Backend)
class BackendAdmin(AddServerAdmin):
    test_words = (
        "A test requests the list of models, and one token of each model that the backend serves."
    )
    list_display = (
        "name",
        "standing",
        "deployed",
        "max_concurrency",
        "health",
        "tested",
        "base_url",
        "cached",
        "unreported",
        "improbable",
    )
    list_filter = ("enabled", "running_usage")
    search_fields = ("name", "base_url")
    actions = None
    inlines = (DeploymentInline,)
    readonly_fields = (
        "health",
        "tested",
        "cached",
        "moves",
        "unanswered",
        "lost",
        "unreported",
        "improbable",
        "problems",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Backend]:
        is_on = Q(deployments__enabled=True)
        rows: QuerySet[Backend] = (
            super()
            .get_queryset(request)
            .select_related("last_test")
            .annotate(
                serving=Count("deployments", filter=is_on),
                draining=Count("deployments", filter=is_on & Q(deployments__draining=True)),
            )
        )
        return rows

    def record_test(self, backend: Any) -> None:
        trail.record_values("tested", backend, "base_url", "api_key_env")

    def steps(self, backend: Backend) -> AsyncIterator[Step]:
        return backend_tests.steps_of(backend)

    def keep_test(self, backend: Backend, steps: list[Step]) -> None:
        broken = next((step for step in steps if not step.passed), None)
        verdict = Verdict.PASSED if broken is None else Verdict.FAILED
        retest.keep(backend.pk, Found(verdict, (broken or steps[0]).words))

    @admin.display(description="status")
    def standing(self, backend: Any) -> SafeString:
        """Return the backend's state, as a badge."""
        problems = self.problems(backend)
        if problems != "none":
            return badge(problems, Tone.BAD if backend.enabled else Tone.QUIET)
        if words := self.drains(backend):
            return badge(words, Tone.WARN)
        if any(view.ejected for _, view in _views_of(backend)):
            return badge("ejected", Tone.BAD)
        return badge("ready", Tone.GOOD)

    def drains(self, backend: Any) -> str:
        """How far the deployments are that drain, where there are any."""
        if not backend.draining:
            return ""
        if backend.draining < backend.serving:
            return f"{backend.draining} of {backend.serving} draining"
        drained = Deployment.objects.filter(backend=backend.pk, enabled=True)
        return "drained" if all(left_on(each).is_empty for each in drained) else "draining"

    @admin.display(description="weights served", ordering="serving")
    def deployed(self, backend: Any) -> int:
        return int(backend.serving)

    @admin.display(description="health on this host")
    def health(self, backend: Any) -> str:
        return health_of(backend)

    @admin.display(description="last test", ordering="last_test__tested_at")
    def tested(self, backend: Any) -> str:
        return backend_tests.last_test(backend)

    @admin.display(description="cached prompts")
    def cached(self, backend: Any) -> str:
        """The part of the prompt tokens that it had cached, since the workers of this host started."""
        views = [view for _, view in _views_of(backend)]
        if not (tokens := sum(view.prompt_tokens for view in views)):
            return NOTHING
        return f"{sum(view.cached_tokens for view in views) / tokens:.1%} of {tokens:,} tokens"

    @admin.display(description="conversations that moved away")
    def moves(self, backend: Any) -> str:
        """Conversations that it had and another server got, since the workers of this host started."""
        return _figure(sum(view.moves for _, view in _views_of(backend)))

    @admin.display(description="prompt tokens still to compute")
    def unanswered(self, backend: Any) -> str:
        """What it was sent by this host and has not begun to answer, without what it has cached."""
        return _figure(sum(view.unanswered_tokens for _, view in _views_of(backend)))

    @admin.display(description="prompt tokens lost lately")
    def lost(self, backend: Any) -> str:
        """What it was taken to have cached and computed again; it counts half after 5 seconds."""
        return _figure(sum(view.lost_tokens for _, view in _views_of(backend)))

    @admin.display(description="unreported tokens")
    def unreported(self, backend: Any) -> int:
        """Tokens that the backend generated and never reported, since the workers of this host started."""
        return sum(view.unreported_tokens for _, view in _views_of(backend))

    @admin.display(description="improbable reports")
    def improbable(self, backend: Any) -> int:
        """Answers billed above the context or the output cap, since the workers of this host started."""
        return sum(view.improbable_reports for _, view in _views_of(backend))

    @admin.display(description="problems")
    def problems(self, backend: Any) -> str:
        """The reasons why the backend cannot serve, as far as this process knows."""
        if backend.pk is None or backend._state.adding:
            return NOTHING
        found = []
        if not backend.enabled:
            found.append("It is switched off.")
        if not backend.serving:
            found.append("No deployment is enabled.")
        if unread := variables.problem(backend.api_key_env):
            found.append(unread)
        return " ".join(found) or "none"


def _figure(number: int) -> str:
    """``1,234``; a dash for 0."""
    return f"{number:,}" if number else NOTHING


def health_of(backend: Any) -> str:
    """The backend's health in each worker of this host; other hosts have their own."""
    seen = _views_of(backend)
    if not seen:
        return "no worker uses it"
    busy = sum(view.inflight for _, view in seen)
    waiting = sum(view.waiting for _, view in seen)
    words = [_failures_of(worker, view) for worker, view in seen if view.failures or view.ejected]
    return f"{'; '.join(words) or 'in'} ({busy} running, {waiting} waiting)"


def standing_of_drain(deployment: Deployment) -> str:
    """What still runs on a deployment that drains, on this host; empty for any other."""
    if not deployment.draining:
        return ""
    left = left_on(deployment)
    if left.is_empty:
        return "drained: nothing runs there on this host"
    return f"draining ({left.running} running, {left.waiting} waiting on this host)"


def _views_of(backend: Any) -> list[tuple[int | str, BackendView]]:
    """Return the backend's state in each worker of this host, with the worker's number."""
    return [
        (worker, view)
        for worker, all_views in worker_stats.read(STATS_NAME, list[BackendView])
        for view in all_views
        if view.id == str(backend.pk)
    ]


def _failures_of(worker: int | str, view: BackendView) -> str:
    failed = f"worker {worker}: {view.failures} failures in a row"
    if not view.ejected:
        return failed
    left = f"for {view.seconds_left:.0f} s more" if view.seconds_left else "until the next probe"
    return f"{failed}, ejected {left}"
