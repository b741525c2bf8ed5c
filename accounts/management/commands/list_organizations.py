"""List the organizations."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts import facts
from accounts.management.arguments import add_json_flag, report_rows
from accounts.models import Organization


class Command(BaseCommand):
    help = "List the organizations, by name."

    def add_arguments(self, parser: CommandParser) -> None:
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        rows = list(facts.organizations(Organization.objects.all()))
        report_rows(self, options["json"], rows)
