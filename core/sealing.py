"""Encryption at rest, of captures and of reference clips.

Sealed content is a Fernet token (AES-128-CBC with HMAC-SHA256). Keys are texts of any length; the
first one seals, all of them open, so that a key is replaced by putting a new one in front.
Callers store the sealed bytes.

The library takes 60 ms to load, so a server does that once it listens (``load``).
"""

# ruff: noqa: PLC0415  # see above

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence


def load() -> None:
    """Load the library now, so that the first cipher costs nothing."""
    import cryptography.fernet  # noqa: F401


class Unreadable(Exception):
    """The sealed content was changed, or its key is no longer among the keys."""


class Cipher:
    """Seals and opens content with ``keys``, the newest first.

    Raises ``ValueError`` when there is no key or an empty one.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys or not all(keys):
            raise ValueError("Encryption at rest needs at least one key, and none empty.")
        from cryptography.fernet import Fernet, InvalidToken, MultiFernet

        self._invalid = InvalidToken
        fernets = [Fernet(_fernet_key(key)) for key in keys]
        self._newest = fernets[0]
        self._fernet = MultiFernet(fernets)

    def seal(self, content: bytes) -> bytes:
        """``content`` encrypted with the newest key; about a third longer than ``content``."""
        return self._newest.encrypt(content)

    def open(self, sealed: bytes) -> bytes:
        """The content that was sealed. Raises ``Unreadable``."""
        try:
            return self._fernet.decrypt(sealed)
        except self._invalid:
            raise Unreadable from None

    def reseal(self, sealed: bytes) -> bytes | None:
        """``sealed`` encrypted anew with the newest key, or None where that key sealed it.

        Raises ``Unreadable``.
        """
        try:
            self._newest.decrypt(sealed)
        except self._invalid:
            return self.seal(self.open(sealed))
        return None


def _fernet_key(key: str) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest())
