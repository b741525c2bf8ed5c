"""Secrets that operators keep in the environment and name in the database."""

from __future__ import annotations

import environ


def secret_of(variable: str) -> str | None:
    """What ``variable`` holds, or the file that ``NAME_FILE`` names; None where that is nothing."""
    if not variable:
        return None
    return environ.FileAwareEnv().str(variable, default="") or None
