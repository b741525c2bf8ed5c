"""Django's registration of the composition root, which carries the server command."""

from __future__ import annotations

from django.apps import AppConfig


class SvcProjectConfig(AppConfig):
    name = "svc_project"
    verbose_name = "svc"

    def ready(self) -> None:
        from svc_project import checks  # noqa: F401  # importing registers them
