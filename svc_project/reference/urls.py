"""Routes of the reference, below /docs/."""

from __future__ import annotations

from django.urls import path

from svc_project.reference import pages
from svc_project.surfaces import Surface

urlpatterns = [
    path("", pages.index, name="docs"),
    path("inference/", pages.reference, {"surface": Surface.INFERENCE}, name="docs-inference"),
    path("speech/", pages.reference, {"surface": Surface.SPEECH}, name="docs-speech"),
    path("errors/", pages.error_codes, name="docs-errors"),
]
