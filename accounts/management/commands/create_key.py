"""Make an API key and print its secret, once."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.keys.keys import KeyLimits, TooManyKeys, mint
from accounts.management.arguments import (
    KEY_LIMITS,
    add_json_flag,
    add_limits,
    add_priority,
    find_organization,
    moment,
    refusal,
    report,
)
from accounts.models import Scope


class Command(BaseCommand):
    help = "Make an API key. Its secret is printed now and never again. Every run makes a new key."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("organization", metavar="ORGANIZATION", help="Its name or its id.")
        parser.add_argument("--scope", choices=Scope.values, required=True)
        parser.add_argument("--label", default="", help="What the key is for.")
        add_limits(parser, KEY_LIMITS)
        add_priority(parser, "Its class; the organization's by default.")
        parser.add_argument(
            "--expires-at", type=moment, metavar="TIME", help="When it ends; never by default."
        )
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        organization = find_organization(options["organization"], "ORGANIZATION")
        try:
            new = mint(
                organization,
                Scope(options["scope"]),
                options["label"],
                limits=KeyLimits(*(options.get(name) for name in (*KEY_LIMITS, "priority"))),
                expires_at=options["expires_at"],
            )
        except TooManyKeys as error:
            raise CommandError(error.message) from None
        except ValidationError as error:
            raise refusal(error, {}) from None
        report(
            self,
            options["json"],
            {
                "api_key_id": str(new.api_key.pk),
                "key": new.secret,
                "prefix": new.api_key.prefix,
            },
            f"Made a key of scope {new.api_key.scope} for {organization.name}"
            f" (id {new.api_key.pk}).\n{new.secret}\nKeep it now: it is not shown again.",
        )
