"""Revoke an admin key."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.keys.admin_keys import revoke
from accounts.keys.keys import cut_secrets
from accounts.management.arguments import add_json_flag, report
from accounts.models import AdminKey
from core.clock import iso_milliseconds


class Command(BaseCommand):
    help = "Revoke an admin key for good, at once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key", metavar="KEY", help="Its id or its prefix.")
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        named = cut_secrets(options["key"].strip()).rstrip("….")
        try:
            found = list(AdminKey.objects.filter(pk=uuid.UUID(named)))
        except ValueError:
            found = list(AdminKey.objects.filter(prefix=named))
        if len(found) != 1:
            raise CommandError(f"KEY: {len(found)} admin keys have the id or the prefix {named!r}.")
        revoke(found[0])
        assert found[0].revoked_at is not None  # noqa: S101  # revoke sets it
        revoked_at = iso_milliseconds(found[0].revoked_at)
        report(
            self,
            options["json"],
            {"admin_key_id": str(found[0].pk), "revoked_at": revoked_at},
            f"Admin key {found[0].prefix}… ({found[0].pk}) is revoked since {revoked_at}.",
        )
