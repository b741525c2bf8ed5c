"""Disable a user."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts import users
from accounts.management.arguments import add_json_flag, find_user, report


class Command(BaseCommand):
    help = (
        "End the sessions of a user, who can log in no more. Keys that the user made go on working."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        user, _ = users.change(find_user(options["email"]), active=False)
        facts = {"user_id": str(user.pk)}
        report(self, options["json"], facts, f"User {user.email} is disabled.")
