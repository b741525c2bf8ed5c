"""Change the plan, the limits and the class of an organization."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import facts
from accounts.management.arguments import (
    add_json_flag,
    add_plan_and_limits,
    find_organization,
    plan_and_limits,
    refusal,
    report_row,
)
from accounts.organizations import change


class Command(BaseCommand):
    help = "Change what is given of plan, limits and class of an organization, within a second."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("organization", metavar="ORGANIZATION", help="Its name or its id.")
        add_plan_and_limits(parser)
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        organization = find_organization(options["organization"], "ORGANIZATION")
        if not (given := plan_and_limits(options)):
            raise CommandError(
                "Give a limit to change, --plan or --priority; show_organization shows them."
            )
        try:
            organization, _ = change(organization.name, given)
        except ValidationError as error:
            raise refusal(error, {}) from None
        report_row(self, options["json"], facts.organization(organization))
