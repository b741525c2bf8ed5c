"""What a well-formed variable name, figure and backend address is, for forms and constraints alike.

The patterns keep to what the regular expressions of Python (which SQLite uses here) and of
PostgreSQL have in common.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from svc_project.lib import addresses

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

    Only an operator names a backend's address. What is refused here would turn a pasted or
    mistyped one into a leak of credentials, the host's own ones included.

    Raises ``ValidationError``, worded for people, when another scheme, no host, a user name or
    password, a query or a fragment is given, or when the host is literally an address that
    ``addresses.refusal`` refuses. What a name leads to is judged when it is connected to.
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
