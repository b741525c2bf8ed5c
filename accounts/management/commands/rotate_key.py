"""Rotate an API key: make its successor, and end it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.keys.keys import NotRotatable, TooManyKeys, rotate
from accounts.management.arguments import add_json_flag, add_key, find_key, report
from core import clock
from core.clock import iso_milliseconds

_DAY: Final = 86_400
_LONGEST: Final = 7 * _DAY
"""Seconds, the longest that the admin offers."""


class Command(BaseCommand):
    help = (
        "Make a key with the scope, the label and the limits of another, which ends. The new secret is "
        "printed now and never again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_key(parser)
        parser.add_argument(
            "--overlap",
            type=int,
            default=_DAY,
            metavar="SECONDS",
            help=f"How long the old key still works, up to {_LONGEST}; {_DAY} by default, 0: it ends "
            "now.",
        )
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 <= options["overlap"] <= _LONGEST:
            raise CommandError(f"--overlap: must be from 0 to {_LONGEST}.")
        old = find_key(options)
        try:
            new = rotate(old, clock.now() + timedelta(seconds=options["overlap"]))
        except NotRotatable as error:
            raise CommandError(f"KEY: {error}") from None
        except TooManyKeys as error:
            raise CommandError(error.message) from None
        assert old.expires_at is not None  # noqa: S101  # rotate sets it
        until = iso_milliseconds(old.expires_at)
        report(
            self,
            options["json"],
            {
                "api_key_id": str(new.api_key.pk),
                "key": new.secret,
                "prefix": new.api_key.prefix,
                "old_api_key_id": str(old.pk),
                "old_expires_at": until,
            },
            f"Made {new.api_key.prefix}… (id {new.api_key.pk}); {old.prefix}… works until {until}.\n"
            f"{new.secret}\nKeep it now: it is not shown again.",
        )
