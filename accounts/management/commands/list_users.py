"""List the users of console and admin."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts import facts
from accounts.management.arguments import add_json_flag, find_organization, report_rows
from accounts.models import User


class Command(BaseCommand):
    help = "List the users of console and admin, by address."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--organization", metavar="NAME", help="Only its members. Its name or its id."
        )
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        rows = User.objects.all()
        if options["organization"]:
            organization = find_organization(options["organization"], "--organization")
            rows = rows.filter(memberships__organization=organization)
        report_rows(self, options["json"], list(facts.users(rows)))
