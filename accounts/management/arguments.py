"""How the account commands read their arguments and print what they did."""

from __future__ import annotations

import argparse
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.keys import keys
from accounts.models import ApiKey, Organization, Plan, PriorityClass, User
from core import clock

LIMITS: Final = {
    "requests_per_minute": "Chat requests a minute.",
    "tokens_per_minute": "Chat tokens a minute.",
    "speech_requests_per_minute": "Speech requests a minute.",
    "speech_characters_per_day": "Characters spoken in a UTC day.",
}
"""The limits of an organization; a key of its own has the first two."""
KEY_LIMITS: Final = tuple(LIMITS)[:2]


def limit(text: str) -> int | None:
    """A limit: a positive whole number, or ``unlimited`` (``None``)."""
    if text == "unlimited":
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError('must be a positive whole number or "unlimited".')
    return int(text)


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError("must be yes or no.")
    return text == "yes"


def moment(text: str) -> datetime:
    """A time to come, of RFC 3339, whose zone must be given."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise argparse.ArgumentTypeError("must be a time with its zone, as 2027-01-31T00:00:00Z.")
    if found <= clock.now():
        raise argparse.ArgumentTypeError("must be a time to come.")
    return found


def add_json_flag(parser: CommandParser) -> None:
    """The flag of every account command that scripts rely on."""
    parser.add_argument("--json", action="store_true", help="Print JSON.")


def add_limits(parser: CommandParser, names: Sequence[str] = tuple(LIMITS)) -> None:
    """An argument for each limit; those that are not given are not among the options."""
    for field in names:
        parser.add_argument(
            f"--{field.replace('_', '-')}",
            type=limit,
            metavar="N",
            default=argparse.SUPPRESS,
            help=f'{LIMITS[field]} A whole number or "unlimited".',
        )


def add_priority(parser: CommandParser, help_: str) -> None:
    """The argument for a priority class; not among the options when it is not given."""
    parser.add_argument(
        "--priority", choices=PriorityClass.values, default=argparse.SUPPRESS, help=help_
    )


def add_plan_and_limits(parser: CommandParser) -> None:
    parser.add_argument("--plan", choices=Plan.values, default=argparse.SUPPRESS)
    add_priority(parser, "Which chat requests get a model server's free slots first.")
    parser.add_argument(
        "--diagnostic-captures",
        type=_yes_or_no,
        metavar="yes|no",
        dest="captures_allowed",
        default=argparse.SUPPRESS,
        help="Whether a request may ask that its content is kept for operators.",
    )
    add_limits(parser)


def plan_and_limits(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given."""
    fields = ("plan", "priority", "captures_allowed", *LIMITS)
    return {name: options[name] for name in fields if name in options}


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


def add_key(parser: CommandParser) -> None:
    """The arguments that name an existing key."""
    parser.add_argument(
        "key",
        metavar="KEY",
        help="The id or the prefix of the key, or its label with --organization.",
    )
    parser.add_argument(
        "--organization", metavar="NAME", help="Look only among its keys. Its name or its id."
    )


def find_key(options: Mapping[str, Any]) -> ApiKey:
    """The key that ``add_key`` names. Of keys with one label, the one that works.

    A whole key is cut to its prefix. A label is looked for in one organization only: each chooses its
    own, so another one's key may have the label that is meant. Raises ``CommandError``.
    """
    among = ApiKey.objects.select_related("organization")
    if options["organization"]:
        organization = find_organization(options["organization"], "--organization")
        among = among.filter(organization=organization)
    named = keys.cut_secrets(options["key"].strip()).rstrip("….")
    try:
        found = list(among.filter(pk=uuid.UUID(named)))
    except ValueError:
        # A prefix first: another key may have it for its label.
        found = list(among.filter(prefix=named)) or (
            list(among.filter(label=named)) if named else []
        )
        if found and found[0].prefix != named and not options["organization"]:
            raise CommandError(
                f"KEY: {named!r} is a label, which several organizations may use. Give --organization too, "
                "or the prefix of the key."
            ) from None
    ended = (keys.KeyStatus.REVOKED, keys.KeyStatus.EXPIRED)
    working = [each for each in found if keys.status(each) not in ended]
    if not found:
        raise CommandError(f"KEY: no key has the id, the prefix or the label {named!r}.")
    if len(working or found) > 1:
        shown = ", ".join(f"{each.prefix}… of {each.organization}" for each in working or found)
        raise CommandError(f"KEY: several keys are named so: {shown}. Give the prefix of one.")
    return (working or found)[0]


def find_user(email: str) -> User:
    """The user with that address. Raises ``CommandError``."""
    try:
        return User.objects.get_by_natural_key(email)
    except User.DoesNotExist:
        raise CommandError(f"EMAIL: there is no user {email!r}.") from None


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


def report_rows(command: BaseCommand, as_json: bool, rows: Sequence[msgspec.Struct]) -> None:
    """Print ``rows`` of one kind as a JSON array, or as a table with a column for each field."""
    if as_json:
        command.stdout.write(msgspec.json.encode(rows).decode())
        return
    if not rows:
        command.stdout.write("none")
        return
    table = [
        list(rows[0].__struct_fields__),
        *([_cell(value) for value in msgspec.structs.astuple(row)] for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        command.stdout.write("  ".join(padded).rstrip())


def report_row(command: BaseCommand, as_json: bool, row: msgspec.Struct) -> None:
    """Print ``row`` as one JSON object, or a line for each field."""
    if as_json:
        command.stdout.write(msgspec.json.encode(row).decode())
        return
    for name, value in msgspec.structs.asdict(row).items():
        command.stdout.write(f"{name:28}{_cell(value)}".rstrip())


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return printable(", ".join(value))
    return "-" if value is None or value == "" else printable(str(value))


def printable(text: str) -> str:
    """``text`` on one line of a terminal: labels and names may hold what moves its cursor."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
