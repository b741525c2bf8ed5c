"""Make an organization, or change the one of that name."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from accounts import changes
from accounts.management.arguments import add_json_flag, limit, refusal, report
from accounts.models import Organization, Plan

LIMITS = {
    "requests_per_minute": "Chat requests a minute.",
    "tokens_per_minute": "Chat tokens a minute.",
    "speech_requests_per_minute": "Speech requests a minute.",
    "speech_characters_per_day": "Characters spoken in a UTC day.",
}


class Command(BaseCommand):
    help = (
        "Make an organization. Run again with the same name, it changes what is given and no more."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("--plan", choices=Plan.values, default=argparse.SUPPRESS)
        for field, meaning in LIMITS.items():
            parser.add_argument(
                f"--{field.replace('_', '-')}",
                type=limit,
                metavar="N",
                default=argparse.SUPPRESS,
                help=f'{meaning} A whole number or "unlimited".',
            )
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        given = {name: options[name] for name in ("plan", *LIMITS) if name in options}
        with transaction.atomic():
            changes.lock(changes.KEYS)
            organization = (
                Organization.objects.select_for_update().filter(name=options["name"]).first()
            )
            made = organization is None
            organization = organization or Organization(name=options["name"])
            for field, value in given.items():
                setattr(organization, field, value)
            try:
                organization.full_clean()
            except ValidationError as error:
                raise refusal(error, {"name": "NAME"}) from None
            if made or given:
                organization.save()
        report(
            self,
            options["json"],
            {"organization_id": str(organization.pk)},
            f"{'Made' if made else 'Updated'} organization {organization.name} ({organization.pk}).",
        )
