"""How commands read a file and print what it changes."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from accounts.management.arguments import printable
from core.catalog_tables import CatalogFileError
from svc_project.configuration.documents import apply_configuration


def add_file(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="The file; see docs/operate/automation.md")


def changes_of(path: Path, *, only_plan: bool) -> list[str]:
    """Apply the file at ``path``, or only plan it. Raises ``CommandError``."""
    return read_and(lambda content: apply_configuration(content, only_plan=only_plan), path)


def read_and(load: Callable[[bytes], list[str]], path: Path) -> list[str]:
    """Call ``load`` with the content of ``path``. Raises ``CommandError`` that names the file."""
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except CatalogFileError as error:
        raise CommandError(f"{path.name}: {error}") from None


def print_changes(command: BaseCommand, changes: Sequence[str]) -> None:
    """Print a line for each change, or that there is none."""
    for change in changes or ["nothing to change"]:
        command.stdout.write(printable(change))
