"""Disable an organization."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts import facts
from accounts.management.arguments import add_json_flag, find_organization, report_row
from accounts.models import Organization
from accounts.organizations import set_disabled


class Command(BaseCommand):
    help = (
        "Disable an organization: every key of it is refused within a second. Enabling undoes it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("organization", metavar="ORGANIZATION", help="Its name or its id.")
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        organization = find_organization(options["organization"], "ORGANIZATION")
        set_disabled(Organization.objects.filter(pk=organization.pk), disabled=True)
        report_row(self, options["json"], facts.organization(organization))
