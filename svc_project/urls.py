"""Routes of the inference surface, which also carries the console and the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="console")),
    path("admin/", admin.site.urls),
    path("console", RedirectView.as_view(pattern_name="console")),
    path("console/", include("inference.console.urls")),
    path("console/", include("speech.console.urls")),
    path("console/", include("usage.console.urls")),
    # Last of the console: it answers every other path under /console/.
    path("console/", include("accounts.console.urls")),
    path("docs", RedirectView.as_view(pattern_name="docs")),
    path("docs/", include("svc_project.reference.urls")),
    path("manage/v1/", include("accounts.api.urls")),
    path("manage/v1/", include("svc_project.configuration.urls")),
    path("", include("inference.api.urls")),
    path("", include("usage.api.urls")),
]

handler400 = "core.api.views.bad_request"
handler404 = "core.api.views.not_found"
handler500 = "core.api.views.server_error"
