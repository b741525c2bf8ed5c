"""Enable a user."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts.management.arguments import add_json_flag, find_user, report
from accounts.models import User


class Command(BaseCommand):
    help = "Let a disabled user log in again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        user: User = find_user(options["email"])
        user.is_active = True
        user.save(update_fields=["is_active"])
        facts = {"user_id": str(user.pk)}
        report(self, options["json"], facts, f"User {user.email} is enabled.")
