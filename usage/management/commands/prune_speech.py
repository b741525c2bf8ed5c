"""``prune_speech --keep MONTHS``: delete the speech rows of old months; their sums stay."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from usage.retention.prune import FEWEST_MONTHS
from usage.retention.speech import prune_speech


class Command(BaseCommand):
    help = (
        "Delete the speech rows of old months, without an archive. Their sums stay, and verify_ledger still "
        "passes. After a crash, run it again to continue."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--keep",
            type=int,
            required=True,
            metavar="MONTHS",
            help=f"Whole months to keep besides the current one, at least {FEWEST_MONTHS}.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["keep"] < FEWEST_MONTHS:
            raise CommandError(f"--keep: at least {FEWEST_MONTHS}, because a query spans 93 days.")
        self.stdout.write(f"{prune_speech(options['keep'])} row(s) of speech removed")
