"""Environment variables: those that the settings read, and those that hold backends' keys.

Operators name the variable of a backend's key in the database. Which names they may choose is
decided by whoever runs the process, so that nobody can have another secret of the process sent to
an address of his choosing.
"""

from __future__ import annotations

from typing import Any, Final

import environ
from django.conf import settings
from django.core.exceptions import ValidationError

PREFIX: Final = "SVC_BACKEND_KEY_"
"""What the name of a variable that holds a backend's key begins with."""
LISTED: Final = "SVC_BACKEND_KEY_VARIABLES"
"""The setting that names further ones."""
_OWN: Final = "SVC_"
_FILE: Final = "_FILE"


class SettingsEnv(environ.FileAwareEnv):  # type: ignore[misc]  # the library has no types
    """Reads variables for the settings, and notes the name of each."""

    def __init__(self, **scheme: Any) -> None:
        super().__init__(**scheme)
        self.names: set[str] = set()

    def get_value(self, var: str, *arguments: Any, **options: Any) -> Any:
        self.names.add(var)
        return super().get_value(var, *arguments, **options)


def is_setting(variable: str, read: frozenset[str]) -> bool:
    """Whether ``variable`` is the gateway's own; ``read`` are the names that its settings read.

    A name that begins as the settings' names do counts as one, because some are read only where
    others are not given.
    """
    return variable in read or (variable.startswith(_OWN) and not variable.startswith(PREFIX))


def refusal(variable: str) -> str | None:
    """Why no backend's key is read from ``variable``, in words for people; None where one is.

    It does not depend on whether the variable is set.
    """
    if not variable:
        return None
    if variable.endswith(_FILE):
        return f"Leave {_FILE} out: {variable} is found by the name {variable.removesuffix(_FILE)}."
    if is_setting(variable, settings.SVC_OWN_VARIABLES):
        return (
            f"{variable} is a setting of the gateway and never a backend's key. "
            f"Give the key a variable of its own that begins with {PREFIX}."
        )
    is_allowed = (
        variable.startswith(PREFIX) and variable != PREFIX
    ) or variable in settings.SVC_BACKEND_KEY_VARIABLES
    if is_allowed:
        return None
    return (
        f"No backend's key is read from {variable}. Name a variable that begins with {PREFIX}, "
        f"or have {variable} listed in the setting {LISTED}."
    )


def problem(variable: str) -> str | None:
    """What keeps a backend's key from being read, in words for people; None for no variable too."""
    if not variable:
        return None
    if refused := refusal(variable):
        return refused
    if secret_of(variable) is None:
        return f"The variable {variable} is not set in this process."
    return None


def check_key_variable(variable: str) -> None:
    """Accept the name of a variable that a backend's key is read from, or none.

    Raises ``ValidationError``, worded for people.
    """
    if refused := refusal(variable):
        raise ValidationError(refused)


def secret_of(variable: str) -> str | None:
    """The key in ``variable``, or in the file that ``NAME_FILE`` names; None where that is nothing.

    Of a variable that ``refusal`` refuses, None, whatever it holds.
    """
    if not variable or refusal(variable):
        return None
    return environ.FileAwareEnv().str(variable, default="") or None
