"""Revoke an API key."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.keys.keys import revoke
from accounts.management.arguments import add_json_flag, report
from accounts.models import ApiKey
from core.clock import iso_milliseconds


class Command(BaseCommand):
    help = "Revoke an API key for good. Every process refuses it within a second."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("api_key_id", metavar="API_KEY_ID", help="The id (a UUID) of the key.")
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            api_key = ApiKey.objects.get(pk=uuid.UUID(options["api_key_id"]))
        except ValueError:
            raise CommandError(
                "API_KEY_ID: not a UUID. Give the id of the key, not its prefix or secret."
            ) from None
        except ApiKey.DoesNotExist:
            raise CommandError(f"API_KEY_ID: there is no key {options['api_key_id']}.") from None
        revoke(api_key)
        assert api_key.revoked_at is not None  # noqa: S101  # revoke sets it
        revoked_at = iso_milliseconds(api_key.revoked_at)
        report(
            self,
            options["json"],
            {"api_key_id": str(api_key.pk), "revoked_at": revoked_at},
            f"Key {api_key.prefix}… ({api_key.pk}) is revoked since {revoked_at}.",
        )
