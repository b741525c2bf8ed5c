"""``plan FILE.toml``: print what ``apply`` would change."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand

from svc_project.management.configuration_file import add_file, changes_of, print_changes

CHANGES: Final = 2
"""The exit status where something would change, as of ``terraform plan -detailed-exitcode``."""


class Command(BaseCommand):
    help = (
        "Print what `apply` would change: organizations, users, models, prices, backends and voices. "
        f"Nothing is changed. The status is 0 where nothing would be, {CHANGES} where something would, 1 "
        "for an error."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_file(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        changes = changes_of(path, only_plan=True)
        print_changes(self, changes)
        if changes:
            self.stdout.flush()
            sys.exit(CHANGES)
