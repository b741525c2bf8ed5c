"""Captures and reference clips at rest are unreadable without a key and cannot be changed unnoticed."""

from __future__ import annotations

import pytest

from core.sealing import Cipher, Unreadable

CLIP = b"RIFF" + bytes(range(256)) * 100


def test_a_sealed_clip_opens_to_the_same_bytes() -> None:
    cipher = Cipher(["a key"])
    sealed = cipher.seal(CLIP)
    assert b"RIFF" not in sealed
    assert len(sealed) < 1.4 * len(CLIP) + 200
    assert cipher.open(sealed) == CLIP


def test_sealing_twice_gives_different_bytes() -> None:
    cipher = Cipher(["a key"])
    assert cipher.seal(CLIP) != cipher.seal(CLIP)


def test_another_key_does_not_open_it() -> None:
    sealed = Cipher(["a key"]).seal(CLIP)
    with pytest.raises(Unreadable):
        Cipher(["another key"]).open(sealed)


@pytest.mark.parametrize("sealed", [b"", b"x", CLIP, Cipher(["a key"]).seal(CLIP)[:-1]])
def test_changed_bytes_are_refused(sealed: bytes) -> None:
    with pytest.raises(Unreadable):
        Cipher(["a key"]).open(sealed)
    with pytest.raises(Unreadable):
        Cipher(["a key"]).reseal(sealed)


def test_one_changed_byte_is_refused() -> None:
    cipher = Cipher(["a key"])
    sealed = bytearray(cipher.seal(CLIP))
    sealed[500] = ord("A") if sealed[500] != ord("A") else ord("B")
    with pytest.raises(Unreadable):
        cipher.open(bytes(sealed))


def test_a_key_is_replaced_without_losing_a_clip() -> None:
    sealed = Cipher(["old"]).seal(CLIP)
    both = Cipher(["new", "old"])
    assert both.open(sealed) == CLIP
    resealed = both.reseal(sealed)
    assert resealed is not None
    assert both.reseal(resealed) is None
    assert Cipher(["new"]).open(resealed) == CLIP
    with pytest.raises(Unreadable):
        Cipher(["old"]).open(resealed)


@pytest.mark.parametrize("keys", [[], [""], ["good", ""]])
def test_a_missing_key_is_an_error_at_once(keys: list[str]) -> None:
    with pytest.raises(ValueError, match="at least one key"):
        Cipher(keys)
