"""Make an admin key and print its secret, once."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandParser

from accounts.keys.admin_keys import mint
from accounts.management.arguments import add_json_flag, moment, refusal, report


class Command(BaseCommand):
    help = (
        "Make an admin key, which opens the management API for the whole installation. Its secret is "
        "printed now and never again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("label", metavar="LABEL", help="Which automation uses it.")
        parser.add_argument(
            "--expires-at", type=moment, metavar="TIME", help="When it ends; never by default."
        )
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            new = mint(options["label"], options["expires_at"])
        except ValidationError as error:
            raise refusal(error, {"label": "LABEL"}) from None
        admin_key = new.admin_key
        report(
            self,
            options["json"],
            {"admin_key_id": str(admin_key.pk), "key": new.secret, "prefix": admin_key.prefix},
            f"Made the admin key {admin_key.label} (id {admin_key.pk}).\n{new.secret}\n"
            "Keep it now: it is not shown again.",
        )
