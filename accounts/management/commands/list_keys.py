"""List API keys, without their secrets."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts import facts
from accounts.keys.keys import of_organization
from accounts.management.arguments import add_json_flag, find_organization, report_rows


class Command(BaseCommand):
    help = "List the API keys of an organization that work, the newest first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("organization", metavar="ORGANIZATION", help="Its name or its id.")
        parser.add_argument(
            "--ended", action="store_true", help="Those that are revoked or expired."
        )
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        organization = find_organization(options["organization"], "ORGANIZATION")
        rows = of_organization(organization, live=not options["ended"])
        report_rows(self, options["json"], list(facts.api_keys(rows)))
