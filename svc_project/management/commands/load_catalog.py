"""``load_catalog FILE.toml``: update the catalog to match a file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.catalog_tables import CatalogFileError
from svc_project.management.catalog import load_catalog_file


class Command(BaseCommand):
    help = (
        "Load models, voices and backends from a TOML file. A file with an error changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="The catalog file; see docs/operate/catalog.md")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            changes = load_catalog_file(path.read_bytes())
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
        except CatalogFileError as error:
            raise CommandError(f"{path.name}: {error}") from None
        for change in changes or ["nothing to change"]:
            self.stdout.write(change)
