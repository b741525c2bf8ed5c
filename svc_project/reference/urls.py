"""Routes of the reference, below /docs/."""

from __future__ import annotations

from django.urls import path

from svc_project.openapi import MANAGEMENT
from svc_project.reference import pages
from svc_project.surfaces import Surface

urlpatterns = [
    path("", pages.index, name="docs"),
    path("inference/", pages.reference, {"document": Surface.INFERENCE}, name="docs-inference"),
    path("speech/", pages.reference, {"document": Surface.SPEECH}, name="docs-speech"),
    path("management/", pages.reference, {"document": MANAGEMENT}, name="docs-management"),
    path("errors/", pages.error_codes, name="docs-errors"),
]
