"""Django's registration of the admin, with this project's own site."""

from __future__ import annotations

from django.contrib.admin.apps import SimpleAdminConfig


class OperationsAdminConfig(SimpleAdminConfig):
    """Registers no page: ``svc_project.urls`` does, which only a process that serves pages imports."""

    default_site = "svc_project.admin.site.OperationsSite"
