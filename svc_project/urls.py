"""Routes of the inference surface, which also carries the console and the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, register_converter
from django.views.generic import RedirectView

from accounts.console.addresses import OrganizationConverter
from accounts.console.urls import PEOPLE

register_converter(OrganizationConverter, "organization")
admin.autodiscover()

CONSOLE: list[URLPattern | URLResolver] = [
    # Before that of one request, which would take their addresses.
    path("", include("usage.console.urls")),
    path("", include("inference.console.urls")),
    path("", include("speech.console.urls")),
    path("", include("accounts.console.urls")),
]
"""The pages of an organization."""

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="console")),
    path("admin/", admin.site.urls),
    path("console", RedirectView.as_view(pattern_name="console")),
    path("console/", include(PEOPLE)),
    path("console/<organization:organization>/", include(CONSOLE)),
    # Addresses without an organization, which lead to those with the one that was shown last.
    path("console/", include(CONSOLE)),
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
