"""The console's pages that are about usage, below /console/."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from usage import console, console_requests

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="console-usage"), name="console"),
    path("usage", console.UsagePage.as_view(), name="console-usage"),
    path("requests", console_requests.RequestsPage.as_view(), name="console-requests"),
    path(
        "requests/<str:request_id>",
        console_requests.RequestPage.as_view(),
        name="console-request",
    ),
]
