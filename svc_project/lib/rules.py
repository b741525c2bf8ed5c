"""What a well-formed variable name, figure and backend address is, for forms and constraints alike.

The patterns keep to what the regular expressions of Python (which SQLite uses here) and of
PostgreSQL have in common.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

VARIABLE = r"\A([A-Za-z_][A-Za-z0-9_]*)?\Z"
BASE_URL = r"\Ahttps?://[^/?#@\s]+(/[^?#@\s]*)?\Z"

AT_LEAST_ONE = MinValueValidator(1)

_REFUSED_NETWORKS = (
    ipaddress.ip_network(
        "169.254.0.0/16"
    ),  # link-local (RFC 3927); instance metadata on most clouds
    ipaddress.ip_network("fe80::/10"),  # link-local (RFC 4291, section 2.5.6)
    ipaddress.ip_network("fd00:ec2::/32"),  # instance metadata over IPv6 on EC2
)


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
    password, a query or a fragment is given, or when the host is literally a link-local or
    instance-metadata address (in any spelling that the resolver takes).
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
    literal = _literal_address(host)
    if literal is not None and any(literal in network for network in _REFUSED_NETWORKS):
        raise ValidationError("Link-local and instance-metadata addresses are no backends.")


def _literal_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            # Shortened, octal, hexadecimal and single-number forms, which the resolver takes too.
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address
