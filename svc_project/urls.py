"""Routes of the inference surface, which also carries the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("", include("inference.urls")),
    path("", include("usage.urls")),
]

handler400 = "svc_project.lib.views.bad_request"
handler404 = "svc_project.lib.views.not_found"
handler500 = "svc_project.lib.views.server_error"
