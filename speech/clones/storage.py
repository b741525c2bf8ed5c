"""Encryption of reference clips at rest.

A sealed clip is a Fernet token (AES-128-CBC with HMAC-SHA256). Keys are texts of any length; the
first one seals, all of them open, so that a key is replaced by putting a new one in front and
resealing what the old one sealed. Where the sealed bytes are kept is not decided here.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class UnreadableClip(Exception):
    """The sealed clip was changed, or its key is no longer among the keys."""


class ClipCipher:
    """Seals and opens reference clips with ``keys``, the newest first.

    Raises ``ValueError`` when there is no key or an empty one.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys or not all(keys):
            raise ValueError("Encrypting reference clips needs at least one key, and none empty.")
        self._fernet = MultiFernet([Fernet(_fernet_key(key)) for key in keys])

    def seal(self, clip: bytes) -> bytes:
        """``clip`` encrypted with the newest key; about a third longer than ``clip``."""
        return self._fernet.encrypt(clip)

    def open(self, sealed: bytes) -> bytes:
        """What ``seal`` was given. Raises ``UnreadableClip``."""
        try:
            return self._fernet.decrypt(sealed)
        except InvalidToken:
            raise UnreadableClip from None

    def reseal(self, sealed: bytes) -> bytes:
        """``sealed`` encrypted anew with the newest key. Raises ``UnreadableClip``."""
        try:
            return self._fernet.rotate(sealed)
        except InvalidToken:
            raise UnreadableClip from None


def _fernet_key(key: str) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest())
