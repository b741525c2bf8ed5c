"""``manage.py describe_settings``: docs/settings.md, from the table of settings."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from svc_project import operator_settings


class Command(BaseCommand):
    help = "Print docs/settings.md: every setting with its default and its meaning."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(operator_settings.page(), ending="")
