"""Runs commands: the words of ``svc``, such as ``org list``, and every command of Django by its own name.

A word pair stands for one command, so that ``svc org create`` and ``manage.py create_organization`` are
the same. What ends a command early is one line and a status: 2 for its arguments and the settings,
3 and 4 for the database (``core.database.failures.Kind``), 1 for everything else.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import ManagementUtility, get_commands
from django.core.management.base import BaseCommand
from django.db import Error

from core.database.failures import failure_of
from svc_project.doctor.findings import Finding, State, show

FIRST: Final[Mapping[str, str]] = {
    "serve": "serve both surfaces",
    "reload": "hand over to the release that is now installed",
    "migrate": "make the database's schema, or bring it to this release",
    "doctor": "check settings, database, Redis, disk, clocks, backends and secrets",
    "plan": "print what `apply` would change of organizations, users and the catalog",
    "apply": "make organizations, users and the catalog as a file says",
}
"""The commands that everybody needs, with what each does."""

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "org": {
        "list": "list_organizations",
        "create": "create_organization",
        "show": "show_organization",
        "limits": "limit_organization",
        "disable": "disable_organization",
        "enable": "enable_organization",
    },
    "keys": {
        "list": "list_keys",
        "create": "create_key",
        "rotate": "rotate_key",
        "revoke": "revoke_key",
    },
    "users": {
        "list": "list_users",
        "create": "create_console_user",
        "disable": "disable_user",
        "enable": "enable_user",
    },
    "admin-keys": {
        "list": "list_admin_keys",
        "create": "create_admin_key",
        "revoke": "revoke_admin_key",
    },
}
"""The command that each word of a group stands for."""

_COMMANDS: Final = {
    f"{group} {word}": command for group, words in GROUPS.items() for word, command in words.items()
}
_APPS: Final = ("svc_project", "inference", "speech", "usage", "accounts")
_USAGE: Final = 2


class NoSuchCommand(Exception):
    """The message says which command there is not, and which there are."""


class CommandLine(ManagementUtility):
    """Django's, which knows the words too."""

    def main_help_text(self, commands_only: bool = False) -> str:  # noqa: FBT002  # Django's
        if commands_only:
            return "\n".join(sorted([*get_commands(), *_COMMANDS]))
        first = [f"  {name:16}{does}" for name, does in FIRST.items()]
        groups = [f"  {group + ' WORD':16}{', '.join(words)}" for group, words in GROUPS.items()]
        named = {*FIRST, *_COMMANDS.values()}
        own = {name for name, app in get_commands().items() if app in _APPS}
        return "\n".join(
            [
                f"{self.prog_name} COMMAND [ARGUMENTS]; `{self.prog_name} COMMAND --help` says more.",
                *("", *first, *groups),
                *("", "Others of svc:", _listed(own - named)),
                *("", "Of Django and its packages:", _listed(get_commands().keys() - own - named)),
            ]
        )

    def fetch_command(self, subcommand: str) -> BaseCommand:
        """The command of a name or of words. Raises ``NoSuchCommand``."""
        name = _COMMANDS.get(subcommand, subcommand)
        if name not in get_commands():
            # Settings that are not valid hide all commands but Django's own: they are named then.
            settings.INSTALLED_APPS  # noqa: B018
            known = [*get_commands(), *_COMMANDS, *GROUPS]
            near = difflib.get_close_matches(subcommand, known, n=1)
            meant = f"Did you mean `{near[0]}`? " if near else ""
            raise NoSuchCommand(
                f"there is no command `{subcommand}`. {meant}`{self.prog_name} help` lists all."
            )
        return super().fetch_command(name)


def run(argv: Sequence[str]) -> int:
    """Run the command that ``argv`` names, the program's name first; return its exit status."""
    program = Path(argv[0]).name
    arguments = ["svc" if program == "__main__.py" else argv[0], *argv[1:]]
    if arguments[1:2] and arguments[1] in GROUPS and arguments[2:3] in (["-h"], ["--help"]):
        words = ", ".join(GROUPS[arguments[1]])
        sys.stdout.write(f"{arguments[1]} WORD: {words}. `{arguments[1]} WORD --help` says more.\n")
        return 0
    try:
        arguments = _joined(arguments)
        if arguments[1:] in (["version"], ["--version"]):
            sys.stdout.write(f"svc {settings.VERSION}\n")
            return 0
        if len(arguments) > 1:
            # Settings and the audit log read the command's own name there.
            name = _COMMANDS.get(arguments[1], arguments[1])
            sys.argv = [argv[0], name, *arguments[2:]]
        CommandLine(arguments).execute()
    except (NoSuchCommand, ImproperlyConfigured) as error:
        if arguments[1:2] == ["doctor"] and isinstance(error, ImproperlyConfigured):
            finding = Finding(State.FAULT, "settings", str(error))
            sys.stdout.write(show([finding], as_json="--json" in arguments))
            return 1
        return _ended(str(error), _USAGE)
    except Error as error:
        found = failure_of(error)
        if found is None or "--traceback" in arguments:
            raise
        return _ended(found.words, found.kind)
    return 0


def _joined(arguments: list[str]) -> list[str]:
    """Make one argument of a group and its word, also behind ``help``. Raises ``NoSuchCommand``."""
    at = 2 if arguments[1:2] == ["help"] else 1
    group, word = (*arguments[at : at + 2], "", "")[:2]
    if group not in GROUPS:
        return arguments
    if word in GROUPS[group]:
        return [*arguments[:at], f"{group} {word}", *arguments[at + 2 :]]
    words = ", ".join(GROUPS[group])
    refused = f"has no `{word}`" if word and not word.startswith("-") else "needs a word"
    raise NoSuchCommand(f"`{group}` {refused}. Its words are: {words}.")


def _listed(names: set[str]) -> str:
    return "  " + ", ".join(sorted(names))


def _ended(words: str, status: int) -> int:
    sys.stderr.write(f"svc: {words}\n")
    return status
