"""Routes of the console's usage pages, below /console/."""

from __future__ import annotations

from django.urls import path

from usage.console import (
    refused_page,
    requests_page,
    speech_downloads,
    speech_page,
    totals,
)

urlpatterns = [
    path("usage", speech_page.usage_page, name="console-usage"),
    path("usage/totals.csv", totals.TotalsView.as_view(), name="console-totals"),
    path(
        "usage/speech/totals.csv",
        speech_downloads.SpeechTotals.as_view(),
        name="console-speech-totals",
    ),
    path(
        "usage/speech/rows.csv",
        speech_downloads.SpeechRows.as_view(),
        name="console-speech-rows",
    ),
    path("requests", requests_page.RequestsPage.as_view(), name="console-requests"),
    path("requests/newer", requests_page.NewerRows.as_view(), name="console-requests-newer"),
    path("requests/refused", refused_page.RefusedPage.as_view(), name="console-refused"),
]
