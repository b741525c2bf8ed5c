"""How the account commands read their arguments and print what they did."""

from __future__ import annotations

import argparse
import json
import uuid
from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Organization


def limit(text: str) -> int | None:
    """A limit: a positive whole number, or ``unlimited`` (``None``)."""
    if text == "unlimited":
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError('must be a positive whole number or "unlimited".')
    return int(text)


def add_json_flag(parser: CommandParser) -> None:
    """The flag of every account command that scripts rely on."""
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")


def find_organization(name_or_id: str, argument: str) -> Organization:
    """The organization of that name, or else of that id; ``CommandError`` names ``argument``."""
    if found := Organization.objects.filter(name=name_or_id).first():
        return found
    try:
        return Organization.objects.get(pk=uuid.UUID(name_or_id))
    except (ValueError, Organization.DoesNotExist):
        raise CommandError(
            f"{argument}: there is no organization {name_or_id!r}. Make it with create_organization."
        ) from None


def refusal(error: ValidationError, arguments: Mapping[str, str]) -> CommandError:
    """Convert ``error`` to the names of the command's ``arguments`` (by field name)."""
    return CommandError(
        " ".join(
            f"{arguments.get(field, '--' + field.replace('_', '-'))}: {' '.join(messages)}"
            for field, messages in error.message_dict.items()
        )
    )


def report(command: BaseCommand, as_json: bool, facts: Mapping[str, str], text: str) -> None:
    """Print ``facts`` as one JSON object, or ``text`` for people."""
    command.stdout.write(json.dumps(facts) if as_json else text)
