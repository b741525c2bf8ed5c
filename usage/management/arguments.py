"""Arguments that the ledger's commands share."""

from __future__ import annotations

import argparse
from datetime import datetime

from django.core.management.base import CommandParser

from usage.periods import parse_moment


def moment(text: str) -> datetime:
    """A timestamp in any form that the usage API takes."""
    try:
        return parse_moment(text.strip())
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be a timestamp such as 2026-11-01T00:00:00Z, or a date: {error}."
        ) from None


def add_since(parser: CommandParser) -> None:
    """``--since T``: the hour of T is the first."""
    parser.add_argument(
        "--since",
        type=moment,
        metavar="T",
        help="Begin with the hour of this timestamp (UTC unless it says otherwise).",
    )
