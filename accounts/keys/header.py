"""Reads the ``Authorization`` header of a request."""

from __future__ import annotations

from collections.abc import Iterable

from accounts.keys.keys import shown_admin_part, shown_part
from core.errors import InvalidCredential


def authorization(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The one ``Authorization`` value of ASGI headers, or ``None``.

    Raises ``InvalidCredential`` when there are two, because it is unclear which one counts.
    """
    found: bytes | None = None
    for name, value in headers:
        if name == b"authorization":
            if found is not None:
                raise InvalidCredential
            found = value
    return found


def shown_prefix(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The display prefix of the key in ASGI headers, known or not; None where none can be a key's."""
    try:
        token = bearer_token(authorization(headers)).decode("ascii")
    except (InvalidCredential, UnicodeDecodeError):
        return None
    return shown_part(token) or shown_admin_part(token)


def bearer_token(authorization: bytes | str | None) -> bytes:
    """The token of ``Bearer <token>`` (RFC 6750, 2.1; the scheme in any case, RFC 9110, 11.1)."""
    if authorization is None:
        raise InvalidCredential
    if isinstance(authorization, str):
        # A character that is not ASCII becomes "?", which no key contains.
        authorization = authorization.encode("ascii", "replace")
    scheme, _, token = authorization.partition(b" ")
    if scheme != b"Bearer" and scheme.lower() != b"bearer":
        raise InvalidCredential
    return token
