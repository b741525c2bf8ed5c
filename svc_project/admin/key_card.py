"""The card of an API key, for whoever answers a leak: whose it is, its use by hour, and *Revoke now*."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Sum
from django.db.models.functions import TruncHour
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse

from accounts.keys import keys
from accounts.keys.keys import KeyStatus
from accounts.models import ApiKey, Scope
from core import clock
from core.clock import hour_of
from svc_project.admin.bars import bars
from usage.models import SpeechRow, UsageRollup

HOURS: Final = 7 * 24
_MOST_SPOKEN: Final = 50_000
"""Speech rows of the organization's that are searched for the key's."""


def page(request: HttpRequest, key_id: uuid.UUID) -> HttpResponse:
    """Show the card, or revoke the key. Raises ``PermissionDenied`` and ``Http404``."""
    if not request.user.has_perm("accounts.view_apikey"):
        raise PermissionDenied
    key = get_object_or_404(ApiKey.objects.select_related("organization"), pk=key_id)
    may_revoke = request.user.has_perm("accounts.change_apikey")
    if request.method == "POST":
        if not may_revoke:
            raise PermissionDenied
        keys.revoke(key)
        messages.success(request, f"{key.prefix}… is revoked: it is refused within a second.")
        return HttpResponseRedirect(request.path)
    standing = keys.status(key)
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": f"Key {key.prefix}…",
        "key": key,
        "standing": standing.label,
        "may_revoke": may_revoke and standing in (KeyStatus.ACTIVE, KeyStatus.EXPIRING),
        "is_revoked": standing is KeyStatus.REVOKED,
    }
    if request.user.has_perm("usage.view_usagerow") and key.scope != Scope.READ:
        now = clock.now()
        by_hour = _by_hour(key, hour_of(now) - timedelta(hours=HOURS - 1))
        hours = [hour_of(now) - timedelta(hours=back) for back in reversed(range(HOURS))]
        used = [(hour, by_hour[hour]) for hour in hours if by_hour.get(hour)]
        table = "speechrow" if key.scope == Scope.SPEECH else "usagerow"
        context |= {
            "rows": f"{reverse(f'admin:usage_{table}_changelist')}?{urlencode({'q': str(key.pk)})}",
            "bars": bars(
                [(_title(hour, by_hour.get(hour, 0)), by_hour.get(hour, 0)) for hour in hours]
            ),
            "used": list(reversed(used)),
            "requests": sum(number for _, number in used),
        }
    return TemplateResponse(request, "admin/key_card.html", context)


def _title(hour: datetime, number: int) -> str:
    return f"{hour:%-d %b %Y, %H}:00 UTC: {number:,}"


def _by_hour(key: ApiKey, since: datetime) -> dict[datetime, int]:
    """The key's requests in each hour from ``since`` on; speech, which has no hourly sums, of its rows."""
    own = {"organization_id": key.organization_id, "api_key_id": key.pk}
    if key.scope == Scope.SPEECH:
        rows = SpeechRow.objects.filter(occurred_at__gte=since, **own)
        newest = rows.order_by("-occurred_at", "-request_id").values("request_id")[:_MOST_SPOKEN]
        spoken = SpeechRow.objects.filter(request_id__in=newest)
        hours = spoken.annotate(at=TruncHour("occurred_at")).values_list("at").order_by()
        return dict(hours.annotate(number=Count("request_id")))
    chats = UsageRollup.objects.filter(hour__gte=since, **own).values_list("hour").order_by()
    return dict(chats.annotate(number=Sum("requests")))
