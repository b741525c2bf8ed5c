"""Routes of the inference surface, which also carries the console and the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("console", RedirectView.as_view(pattern_name="console-usage")),
    path("console/", include("usage.console_urls")),
    # Last of the console: it answers every other path under /console/.
    path("console/", include("accounts.console_urls")),
    path("", include("inference.urls")),
    path("", include("usage.urls")),
]

handler400 = "svc_project.lib.views.bad_request"
handler404 = "svc_project.lib.views.not_found"
handler500 = "svc_project.lib.views.server_error"
