"""The rows of pronunciations: list, put, delete. Everything here blocks on the database."""

from __future__ import annotations

import re
from typing import Final

from django.db import transaction

from accounts.changes import PRONUNCIATIONS, lock
from core.ids import uuid7_hex
from speech.errors import MOST_PRONUNCIATIONS, PronunciationNotFound, TooManyPronunciations
from speech.models import WordPronunciation
from speech.text.pronunciations import Pronunciation, word_key

_ID: Final = re.compile(r"pron_[0-9a-f]{32}", re.ASCII)


def existing(organization_id: str) -> list[WordPronunciation]:
    """The organization's pronunciations, by word."""
    rows = WordPronunciation.objects.filter(organization_id=organization_id)
    return list(rows.order_by("word_key", "pk"))


def find(pronunciation_id: str, organization_id: str) -> WordPronunciation | None:
    """The organization's pronunciation with that id, or None."""
    if _ID.fullmatch(pronunciation_id) is None:
        return None
    rows = WordPronunciation.objects.filter(organization_id=organization_id)
    return rows.filter(pk=pronunciation_id).first()


def put(entry: Pronunciation, organization_id: str) -> tuple[WordPronunciation, bool]:
    """Store ``entry``, in the place of one for the same word; return its row, and whether it is new.

    Raises ``TooManyPronunciations``.
    """
    key = word_key(entry.word, case_sensitive=entry.case_sensitive)
    with transaction.atomic():
        # One at a time, so that two of them cannot both be the last.
        lock(PRONUNCIATIONS)
        rows = WordPronunciation.objects.filter(organization_id=organization_id)
        row = rows.filter(
            word_key=key,
            language=entry.language,
            alphabet=entry.alphabet.value,
            case_sensitive=entry.case_sensitive,
        ).first()
        is_new = row is None
        if row is None:
            if rows.count() >= MOST_PRONUNCIATIONS:
                raise TooManyPronunciations
            row = WordPronunciation(
                id=f"pron_{uuid7_hex()}",
                organization_id=organization_id,
                word_key=key,
                language=entry.language,
                alphabet=entry.alphabet.value,
                case_sensitive=entry.case_sensitive,
            )
        row.word, row.pronunciation = entry.word, entry.spoken
        row.save()
    return row, is_new


def delete(pronunciation_id: str, organization_id: str) -> WordPronunciation:
    """Delete the pronunciation and return what it was. Raises ``PronunciationNotFound``."""
    with transaction.atomic():
        lock(PRONUNCIATIONS)
        row = find(pronunciation_id, organization_id)
        if row is None:
            raise PronunciationNotFound
        row.delete()
        row.pk = pronunciation_id
    return row
