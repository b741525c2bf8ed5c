"""List admin keys, without their secrets."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts import facts
from accounts.management.arguments import add_json_flag, report_rows
from accounts.models import AdminKey


class Command(BaseCommand):
    help = "List the admin keys, the newest first."

    def add_arguments(self, parser: CommandParser) -> None:
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        report_rows(self, options["json"], list(facts.admin_keys(AdminKey.objects.all())))
