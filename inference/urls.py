"""Routes of the inference surface that are DRF views."""

from __future__ import annotations

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from inference.views import ModelListView, ModelView


class AnyIdentifier(StringConverter):
    """All that follows, slashes and line breaks included: an identifier, known or not."""

    regex = "(?s:.+)"


register_converter(AnyIdentifier, "identifier")

urlpatterns = [
    path("v1/models", ModelListView.as_view(), name="models"),
    path("v1/models/<identifier:model>", ModelView.as_view(), name="model"),
]
