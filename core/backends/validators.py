"""Validators for variable names, numbers and backend addresses, for forms and constraints.

The patterns use only syntax that the regular expressions of Python (used by SQLite here) and of
PostgreSQL share.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from core.backends import addresses

VARIABLE = r"\A([A-Za-z_][A-Za-z0-9_]*)?\Z"
BASE_URL = r"\Ahttps?://[^/?#@\s]+(/[^?#@\s]*)?\Z"

AT_LEAST_ONE = MinValueValidator(1)


def positive(name: str, *fields: str) -> models.CheckConstraint:
    """Each of ``fields`` is null or above zero."""
    condition = Q()
    for field in fields:
        condition &= Q(**{f"{field}__isnull": True}) | Q(**{f"{field}__gt": 0})
    return models.CheckConstraint(
        condition=condition,
        name=name,
        violation_error_message=f"These must be above zero: {', '.join(fields)}.",
    )


def check_base_url(url: str) -> None:
    """Accept ``http(s)://host[:port][/path]`` and nothing else.

    Only operators enter backend addresses. The check keeps a pasted or mistyped one from leaking
    credentials, the host's own included.

    Raises ``ValidationError``, worded for people, for another scheme, no host, a user name or
    password, a query or a fragment, or a literal address that ``addresses.refusal`` refuses. The
    address behind a name is checked on connecting.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValidationError(f"This is not an address: {error}.") from None
    if parts.scheme not in ("http", "https"):
        raise ValidationError("Start the address with http:// or https://.")
    if not host or any(character.isspace() for character in url):
        raise ValidationError("Give a host, as in http://10.0.0.5:9000/v1, without blanks.")
    if "@" in parts.netloc:
        raise ValidationError(
            "Take the user name and password out; name the variable that holds the key instead."
        )
    if "?" in url or "#" in url:
        raise ValidationError("Take the part from ? or # on out of the address.")
    address = addresses.literal(host)
    reason = addresses.refusal(address) if address is not None else None
    if reason is not None:
        raise ValidationError(reason)
