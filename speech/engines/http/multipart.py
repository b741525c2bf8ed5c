"""Writes forms with a file (RFC 7578), as browsers do."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

_ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
"""As the HTML standard escapes names ("Multipart form data")."""


def form(
    fields: Mapping[str, str], file_field: str, file: bytes, file_name: str
) -> tuple[bytes, str]:
    """Return a form of ``fields`` and then a WAV ``file``, and its media type with the boundary."""
    boundary = f"svc-{secrets.token_hex(16)}"
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{_escaped(name)}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    parts.append(
        f'--{boundary}\r\ncontent-disposition: form-data; name="{_escaped(file_field)}"; '
        f'filename="{_escaped(file_name)}"\r\ncontent-type: audio/wav\r\n\r\n'
    )
    body = b"".join(["".join(parts).encode(), file, f"\r\n--{boundary}--\r\n".encode()])
    return body, f"multipart/form-data; boundary={boundary}"


def _escaped(name: str) -> str:
    return name.translate(_ESCAPES)
