"""Routes of the usage API."""

from __future__ import annotations

from django.urls import path

from usage.export_views import UsageExportView

urlpatterns = [
    path("v1/usage/export", UsageExportView.as_view(), name="usage-export"),
]
