"""What the admin's page of a model shows beside its fields: who serves it, and who calls it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from core import clock
from inference.admin.backends import health_of, standing_of_drain
from inference.catalog.lifecycle import missing
from inference.models import Deployment, ModelEntry
from usage.admin.sums_lines import Names
from usage.queries.everyone import By, sums
from usage.queries.periods import Period
from usage.templatetags.formats import figure, total

CALLED_WITHIN: Final = timedelta(days=7)
_MOST_CALLERS: Final = 50
_CALLERS: Final = (By.ORGANIZATION, By.API_KEY)


def served_by(entry: ModelEntry) -> SafeString | str:
    """The backends that serve the model's weights, with their health on this host."""
    deployments = (
        Deployment.objects.filter(weights=entry.weights_id)
        .select_related("backend")
        .order_by("backend__name")
    )
    lines = format_html_join(
        "",
        '<div><a href="{}">{}</a> as {}: {}</div>',
        (
            (
                reverse("admin:inference_backend_change", args=[each.backend_id]),
                each.backend,
                each.model,
                _standing(each),
            )
            for each in deployments
        ),
    )
    return lines or "No backend."


def _standing(deployment: Deployment) -> str:
    if not deployment.backend.enabled:
        return "the backend is switched off"
    if not deployment.enabled:
        return "the deployment is switched off"
    return standing_of_drain(deployment) or health_of(deployment.backend)


def to_publish(entry: ModelEntry) -> SafeString | str:
    """Everything that a draft still lacks, each with the page where it is added."""
    page = reverse("admin:inference_modelentry_change", args=[entry.pk])
    places = {
        "pricing": (f"{page}#prices-group", "Add a price"),
        "backends": (reverse("admin:inference_backend_changelist"), "Choose a backend"),
    }
    problems = list(missing(entry, clock.now()))
    return (
        format_html_join(
            "",
            '<div>{} <a href="{}">{}</a></div>',
            ((problem.message, *places[problem.field]) for problem in problems),
        )
        or "Nothing is missing."
    )


def called_by(entry: ModelEntry) -> SafeString | str:
    """The keys that called the model in seven days, dearest first."""
    now = clock.now()
    week = Period(clock.hour_of(now - CALLED_WITHIN), clock.hour_of(now) + timedelta(hours=1))
    entries = sums(week, _CALLERS, model_id=str(entry.pk))
    if not entries:
        return "Nobody in 7 days."
    shown = entries[:_MOST_CALLERS]
    names = Names(_CALLERS, shown)
    lines = format_html_join(
        "",
        '<tr><td>{}</td><td>{}</td><td class="svc-number">{}</td>'
        '<td class="svc-number">{}</td><td>{}</td></tr>',
        (
            (
                *(_linked(*names.of(by, key)) for by, key in zip(_CALLERS, each.key, strict=True)),
                figure(each.requests),
                total(each.cost, each.currency),
                date_format(each.last_hour, "DATETIME_FORMAT"),
            )
            for each in shown
        ),
    )
    left_out = len(entries) - len(shown)
    return format_html(
        '<table class="svc-sums"><thead><tr><th scope="col">Organization</th>'
        '<th scope="col">API key</th><th scope="col" class="svc-number">Requests</th>'
        '<th scope="col" class="svc-number">Cost</th><th scope="col">Last in the hour of</th>'
        "</tr></thead><tbody>{}</tbody></table>{}",
        lines,
        f"{left_out} more." if left_out else "",
    )


def _linked(name: str, address: str) -> SafeString | str:
    return format_html('<a href="{}">{}</a>', address, name) if address else name
