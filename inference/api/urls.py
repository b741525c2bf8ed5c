"""Routes of the inference surface that are DRF views."""

from __future__ import annotations

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from inference.api.views import ModelListView, ModelView


class AnyIdentifier(StringConverter):
    """Matches the rest of the path, with slashes and line breaks, as a model identifier."""

    regex = "(?s:.+)"


register_converter(AnyIdentifier, "identifier")

urlpatterns = [
    path("v1/models", ModelListView.as_view(), name="models"),
    path("v1/models/<identifier:model>", ModelView.as_view(), name="model"),
]
