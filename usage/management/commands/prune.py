"""``prune --keep MONTHS --archive DIRECTORY``: archive old months of usage rows and remove them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from usage.archives import ArchiveUnusable
from usage.prune import FEWEST_MONTHS, PruneFailed, due, prune


class Command(BaseCommand):
    help = (
        "Archive closed months of usage rows as Parquet files and remove the rows. Hourly sums stay, and "
        "verify_ledger goes on to hold. Run again after a crash, it goes on. Needs pyarrow."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--keep",
            type=int,
            required=True,
            metavar="MONTHS",
            help=f"Whole months to keep beside the current one, at least {FEWEST_MONTHS}.",
        )
        parser.add_argument(
            "--archive",
            type=Path,
            required=True,
            metavar="DIRECTORY",
            help="Where the files go; of this ledger alone.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["keep"] < FEWEST_MONTHS:
            raise CommandError(f"--keep: at least {FEWEST_MONTHS}, because a query spans 93 days.")
        directory = options["archive"]
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for month in due(options["keep"]):
                rows = prune(month, directory, self.stdout.write)
                self.stdout.write(f"{month.first:%Y-%m}: {rows} row(s) removed")
        except (PruneFailed, ArchiveUnusable, OSError) as error:
            raise CommandError(str(error)) from None
