"""Routes of the docs, below /docs/."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from svc_project.openapi import DOCUMENTS
from svc_project.openapi_consumers import MANAGEMENT
from svc_project.reference import pages
from svc_project.surfaces import Surface

urlpatterns = [
    path("", pages.index, name="docs"),
    path("guides/", RedirectView.as_view(url="quick-start"), name="docs-guides"),
    path("guides/<slug:name>", pages.guide, name="docs-guide"),
    path("inference/", pages.reference, {"document": Surface.INFERENCE}, name="docs-inference"),
    path("speech/", pages.reference, {"document": Surface.SPEECH}, name="docs-speech"),
    path("management/", pages.reference, {"document": MANAGEMENT}, name="docs-management"),
    *(
        path(f"openapi-{name}.json", pages.download, {"document": name}, name=f"docs-file-{name}")
        for name in DOCUMENTS
    ),
    path("errors/", pages.error_codes, name="docs-errors"),
    path("models/", pages.models, name="docs-models"),
    path("search", pages.find, name="docs-search"),
]
