"""Arguments that the ledger's commands share."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from usage.queries.periods import parse_moment
from usage.verification.progress import NothingToResume, Progress, State


def moment(text: str) -> datetime:
    """Parse a timestamp in any form that the usage API accepts."""
    try:
        return parse_moment(text.strip())
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be a timestamp such as 2026-11-01T00:00:00Z, or a date: {error}."
        ) from None


def add_since(parser: CommandParser) -> None:
    """Add ``--since T``: the hour of T is the first."""
    parser.add_argument(
        "--since",
        type=moment,
        metavar="T",
        help="Begin with the hour of this timestamp (UTC unless it has an offset).",
    )


def add_resume(parser: CommandParser) -> None:
    """Add ``--resume``: continue where a run was stopped."""
    parser.add_argument(
        "--resume",
        action="store_true",
        help="Continue where the last run of this command was stopped, with the same --since.",
    )


def progress_of(
    command: str, state: State, options: Mapping[str, Any], stream: OutputWrapper
) -> Progress[State]:
    """Return the progress of a run with ``--since`` and ``--resume``, reported to ``stream``.

    Raises ``CommandError`` when there is nothing to resume.
    """
    try:
        return Progress(
            command, state, options["since"], resume=options["resume"], report=stream.write
        )
    except NothingToResume as error:
        raise CommandError(str(error)) from None
