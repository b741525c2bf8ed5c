"""Revoke an API key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts.keys.keys import revoke
from accounts.management.arguments import add_json_flag, add_key, find_key, report
from core.clock import iso_milliseconds


class Command(BaseCommand):
    help = "Revoke an API key for good. Every process refuses it within a second."

    def add_arguments(self, parser: CommandParser) -> None:
        add_key(parser)
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        api_key = find_key(options)
        revoke(api_key)
        assert api_key.revoked_at is not None  # noqa: S101  # revoke sets it
        revoked_at = iso_milliseconds(api_key.revoked_at)
        report(
            self,
            options["json"],
            {"api_key_id": str(api_key.pk), "revoked_at": revoked_at},
            f"Key {api_key.prefix}… ({api_key.pk}) is revoked since {revoked_at}.",
        )
