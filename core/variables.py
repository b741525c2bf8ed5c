"""Environment variables that hold backends' keys.

Operators name the variable of a backend's key in the database. The environment decides which names
they may choose, so that no operator can have another secret of the process sent to an address of
his choosing.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ValidationError

from core.environment import SettingsEnv

PREFIX: Final = "SVC_BACKEND_KEY_"
"""The prefix of variables that hold backends' keys."""
LISTED: Final = "SVC_BACKEND_KEY_VARIABLES"
"""The setting that lists further variables."""
_OWN: Final = "SVC_"
_FILE: Final = "_FILE"


def is_setting(variable: str, read: frozenset[str]) -> bool:
    """Whether ``variable`` is a setting of the gateway; ``read`` are the names that settings read.

    Every name with the settings' prefix counts, because some are read only when others are unset.
    """
    return variable in read or (variable.startswith(_OWN) and not variable.startswith(PREFIX))


def refusal(variable: str) -> str | None:
    """Say, for people, why ``variable`` cannot hold a backend's key; None when it can.

    The answer does not depend on whether the variable is set.
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
    """Say, for people, why a backend's key cannot be read; None when it can, or for no variable."""
    if not variable:
        return None
    if refused := refusal(variable):
        return refused
    try:
        if secret_of(variable) is None:
            return f"The variable {variable} is not set in this process."
    except ImproperlyConfigured as error:
        return str(error)
    return None


def check_key_variable(variable: str) -> None:
    """Accept an empty name, or the name of a variable that can hold a backend's key.

    Raises ``ValidationError``, worded for people.
    """
    if refused := refusal(variable):
        raise ValidationError(refused)


def secret_of(variable: str) -> str | None:
    """The key in ``variable``, or in the file that ``NAME_FILE`` names; None when it is empty.

    Always None for a variable that ``refusal`` refuses.
    """
    if not variable or refusal(variable):
        return None
    return SettingsEnv().str(variable, default="") or None
