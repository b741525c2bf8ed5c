"""Routes of the management API that span the apps, below /manage/v1/."""

from __future__ import annotations

from django.urls import path

from svc_project.configuration.views import CatalogView, PricesView

urlpatterns = [
    path("catalog", CatalogView.as_view(), name="manage_catalog"),
    path("prices", PricesView.as_view(), name="manage_prices"),
]
