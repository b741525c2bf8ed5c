"""Routes of the usage API, which is part of the inference surface."""

from __future__ import annotations

from django.urls import path

from usage.api.export_views import UsageExportView
from usage.api.summary_views import UsageSummaryView

urlpatterns = [
    path("v1/usage", UsageSummaryView.as_view(), name="usage"),
    path("v1/usage/export", UsageExportView.as_view(), name="usage-export"),
]
