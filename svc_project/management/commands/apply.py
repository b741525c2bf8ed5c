"""``apply FILE.toml``: make organizations, users and the catalog as a file says."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from svc_project.management.configuration_file import add_file, changes_of, print_changes


class Command(BaseCommand):
    help = (
        "Make organizations, users, models, prices, backends and voices as a TOML file says, in one "
        "transaction. A file with an error changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_file(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        print_changes(self, changes_of(options["file"], only_plan=False))
