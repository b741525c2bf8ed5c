"""Make an organization, or change the one of that name."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandParser

from accounts.management.arguments import (
    add_json_flag,
    add_plan_and_limits,
    plan_and_limits,
    refusal,
    report,
)
from accounts.organizations import change


class Command(BaseCommand):
    help = (
        "Make an organization. Run again with the same name, it changes what is given and no more."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        add_plan_and_limits(parser)
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            organization, made = change(options["name"], plan_and_limits(options))
        except ValidationError as error:
            raise refusal(error, {"name": "NAME"}) from None
        report(
            self,
            options["json"],
            {"organization_id": str(organization.pk)},
            f"{'Made' if made else 'Updated'} organization {organization.name} ({organization.pk}).",
        )
