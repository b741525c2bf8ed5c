"""The pronunciations that organizations have given."""

from __future__ import annotations

from typing import ClassVar, Final

from django.db import models

from accounts.models import Organization
from core import clock
from speech.text.language import Language
from speech.text.pronunciations import Alphabet

LONGEST_WORD: Final = 100
"""Code points of a word, and of a pronunciation."""

_LONGEST_KEY: Final = LONGEST_WORD * 3
"""One code point becomes at most 3 when it is folded (Unicode, CaseFolding.txt)."""


class WordPronunciation(models.Model):
    """How a word, or several, is spoken in every text of the organization.

    An organization has at most ``speech.errors.MOST_PRONUNCIATIONS``.
    ``word_key`` is the word without what does not distinguish it. ``language`` "" is every one.
    """

    id = models.CharField(primary_key=True, max_length=40, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="pronunciations", editable=False
    )
    word = models.CharField(max_length=LONGEST_WORD)
    word_key = models.CharField(max_length=_LONGEST_KEY, editable=False)
    pronunciation = models.CharField(max_length=LONGEST_WORD)
    alphabet = models.CharField(
        max_length=16, choices=[(each.value, each.value) for each in Alphabet]
    )
    language = models.CharField(
        max_length=2, blank=True, choices=[(each.value, each.value) for each in Language]
    )
    case_sensitive = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        verbose_name = "pronunciation"
        ordering: ClassVar[list[str]] = ["organization", "word_key"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["organization", "word_key", "language", "alphabet", "case_sensitive"],
                name="pronunciation_once",
            ),
        ]

    def __str__(self) -> str:
        return self.word
