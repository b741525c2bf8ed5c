"""``prune --keep MONTHS --archive DIRECTORY``: archive old months of usage rows and remove them."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from core.clock import now
from usage.refusals.recorder import delete_expired
from usage.retention.archives import ArchiveUnusable
from usage.retention.prune import FEWEST_MONTHS, PruneFailed, due, prune


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Hold the directory's lock. Raises ``PruneFailed`` when another process holds it."""
    with (directory / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PruneFailed(f"Another prune is writing to {directory}.") from None
        yield


class Command(BaseCommand):
    help = (
        "Archive closed months of usage rows as Parquet files and remove the rows. Hourly sums stay, and "
        "verify_ledger still passes. After a crash, run it again to continue. Needs pyarrow."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--keep",
            type=int,
            required=True,
            metavar="MONTHS",
            help=f"Whole months to keep besides the current one, at least {FEWEST_MONTHS}.",
        )
        parser.add_argument(
            "--archive",
            type=Path,
            required=True,
            metavar="DIRECTORY",
            help="Directory of the archives; must be used by this ledger only.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["keep"] < FEWEST_MONTHS:
            raise CommandError(f"--keep: at least {FEWEST_MONTHS}, because a query spans 93 days.")
        directory = options["archive"]
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with _alone(directory):
                for month in due(options["keep"]):
                    rows = prune(month, directory, self.stdout.write)
                    self.stdout.write(f"{month}: {rows} row(s) removed")
            delete_expired(now())
        except (PruneFailed, ArchiveUnusable, OSError) as error:
            raise CommandError(str(error)) from None
        except Error as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise CommandError(
                f"The database failed: {first}. Nothing is lost. Run prune again."
            ) from None
