"""``rebuild_rollups [--since T] [--resume]``: rebuild the roll-ups and the speech days from the rows."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from usage.management.arguments import add_resume, add_since, progress_of
from usage.verification.rebuild import Rebuilt, rebuild


class Command(BaseCommand):
    help = (
        "Rebuild the hourly roll-ups, the days and the speech days from their rows. Deletes those without "
        "rows, except those of pruned months. Can run while requests are served."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_since(parser)
        add_resume(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        progress = progress_of("rebuild_rollups", Rebuilt(), options, self.stderr)
        rebuilt = rebuild(options["since"], progress)
        self.stdout.write(
            f"made from the rows: {rebuilt.rollups} roll-up(s) of {rebuilt.hours} hour(s) of "
            f"{rebuilt.organizations} organization(s), "
            f"{rebuilt.changed} roll-up(s) had been wrong, {rebuilt.speech_days} speech day(s)"
        )
