"""Django's registration of the admin, with this project's own site."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class OperationsAdminConfig(AdminConfig):
    default_site = "svc_project.admin.site.OperationsSite"
