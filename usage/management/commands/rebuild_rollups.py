"""``rebuild_rollups [--since T]``: make the roll-ups and the speech days from the rows alone."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from usage.management.arguments import add_since
from usage.rebuild import rebuild


class Command(BaseCommand):
    help = (
        "Make the hourly roll-ups and the speech days again from their rows. Those whose rows are "
        "gone go too: give --since when old months were dropped. Can run while requests are served."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_since(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        rebuilt = rebuild(options["since"])
        self.stdout.write(
            f"made from the rows: {rebuilt.rollups} roll-up(s) of {rebuilt.hours} hour(s) of "
            f"{rebuilt.organizations} organization(s), {rebuilt.speech_days} speech day(s)"
        )
