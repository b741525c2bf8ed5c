"""``load_catalog FILE.toml``: update the catalog to match a file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from svc_project.configuration.documents import load_catalog_file
from svc_project.management.configuration_file import print_changes, read_and


class Command(BaseCommand):
    help = (
        "Load models, voices and backends from a TOML file. A file with an error changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="The catalog file; see docs/operate/catalog.md")

    def handle(self, *args: Any, **options: Any) -> None:
        print_changes(self, read_and(load_catalog_file, options["file"]))
