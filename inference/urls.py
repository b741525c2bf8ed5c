"""Routes of the inference surface that are DRF views."""

from __future__ import annotations

from django.urls import path

from inference.views import ModelListView, ModelView

urlpatterns = [
    path("v1/models", ModelListView.as_view(), name="models"),
    path("v1/models/<path:model>", ModelView.as_view(), name="model"),
]
