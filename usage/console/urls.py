"""Routes of the console's usage pages, below /console/."""

from __future__ import annotations

from django.urls import path

from usage.console import refused_page, request_page, requests_page, totals, usage_page

urlpatterns = [
    path("usage", usage_page.UsagePage.as_view(), name="console-usage"),
    path("usage/totals.csv", totals.TotalsView.as_view(), name="console-totals"),
    path("requests", requests_page.RequestsPage.as_view(), name="console-requests"),
    path("requests/newer", requests_page.NewerRows.as_view(), name="console-requests-newer"),
    path("requests/refused", refused_page.RefusedPage.as_view(), name="console-refused"),
    path(
        "requests/<str:request_id>",
        request_page.RequestPage.as_view(),
        name="console-request",
    ),
]
