"""``rebuild_rollups [--since T] [--resume]``: make the roll-ups and the speech days from the rows alone."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from usage.management.arguments import add_resume, add_since, progress_of
from usage.rebuild import Rebuilt, rebuild


class Command(BaseCommand):
    help = (
        "Make the hourly roll-ups, the days and the speech days again from their rows. Those whose rows "
        "are gone go too, those of pruned months stay. Can run while requests are served."
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
            f"{rebuilt.changed} roll-up(s) had not been right, {rebuilt.speech_days} speech day(s)"
        )
