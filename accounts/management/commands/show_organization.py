"""Show an organization."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts import facts
from accounts.management.arguments import add_json_flag, find_organization, report_row


class Command(BaseCommand):
    help = "Show the plan, the limits, the class and the status of an organization."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("organization", metavar="ORGANIZATION", help="Its name or its id.")
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        organization = find_organization(options["organization"], "ORGANIZATION")
        report_row(self, options["json"], facts.organization(organization))
