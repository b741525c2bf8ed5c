"""What clients send and get of pronunciations (docs/api/speech.md, Pronunciations)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from core.asgi.json_object import kind_of, parse_object
from core.errors import InvalidField
from speech.models import LONGEST_WORD, WordPronunciation
from speech.text.ipa import UnknownPhonemes, written_ipa
from speech.text.language import Language
from speech.text.pronunciations import Alphabet, Pronunciation
from speech.text.tags import has_words

LARGEST_BODY: Final = 8 * 1024
"""Bytes of a body."""

_EXAMPLE: Final = '{"word": "...", "pronunciation": "..."}'
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SPELLING: Final = frozenset("\u200c\u200d")
"""Joiners, which Indian scripts spell with."""
_BLANKS: Final = re.compile(r"\s+")


class PronunciationObject(msgspec.Struct, frozen=True):
    """A pronunciation as clients see it; ``language`` is null where it holds in every one."""

    id: str
    object: Literal["pronunciation"]
    word: str
    pronunciation: str
    alphabet: Alphabet
    language: Language | None
    case_sensitive: bool
    created: int


class PronunciationList(msgspec.Struct, frozen=True):
    """All pronunciations of an account, by word."""

    object: Literal["list"]
    data: list[PronunciationObject]


class PronunciationDeletion(msgspec.Struct, frozen=True):
    """The answer to a deletion."""

    id: str
    object: Literal["pronunciation"]
    deleted: Literal[True]


def served(row: WordPronunciation) -> PronunciationObject:
    """``row`` as clients see it."""
    return PronunciationObject(
        id=row.pk,
        object="pronunciation",
        word=row.word,
        pronunciation=row.pronunciation,
        alphabet=Alphabet(row.alphabet),
        language=Language(row.language) if row.language else None,
        case_sensitive=row.case_sensitive,
        created=int(row.created_at.timestamp()),
    )


def read_request(body: bytes) -> Pronunciation:
    """Parse a body. Raises ``InvalidField`` for the first wrong field."""
    return checked(parse_object(body, _EXAMPLE))


def checked(fields: Mapping[str, Any]) -> Pronunciation:
    """The pronunciation that ``fields`` describe. Raises ``InvalidField`` for the first wrong one."""
    word = _text(fields, "word", "the word as it is written")
    spoken = _text(fields, "pronunciation", "how the word is spoken")
    alphabet = Alphabet(_one_of(fields, "alphabet", [*Alphabet]) or Alphabet.RESPELLING)
    if alphabet is Alphabet.IPA:
        try:
            written_ipa(spoken)
        except UnknownPhonemes as error:
            raise InvalidField(f"'pronunciation': {error}", param="pronunciation") from None
    sensitive = fields.get("case_sensitive")
    if sensitive is not None and type(sensitive) is not bool:
        raise InvalidField(
            f"'case_sensitive' must be true or false, not {kind_of(sensitive)}.",
            param="case_sensitive",
        )
    language = _one_of(fields, "language", [*Language]) or ""
    return Pronunciation(word, spoken, alphabet, language, bool(sensitive))


@dataclass(frozen=True, slots=True)
class _Bad:
    """What is wrong with a text, as the end of a sentence about it."""

    reason: str


def _text(fields: Mapping[str, Any], name: str, meaning: str) -> str:
    value = fields.get(name)
    if value is None:
        raise InvalidField(f"'{name}' is required: send {meaning}, as a string.", param=name)
    if type(value) is not str:
        raise InvalidField(f"'{name}' must be a string, not {kind_of(value)}.", param=name)
    text = unicodedata.normalize("NFC", _BLANKS.sub(" ", value).strip())
    if (bad := _problem(text)) is not None:
        raise InvalidField(f"'{name}' {bad.reason}", param=name)
    return text


def _problem(text: str) -> _Bad | None:
    if len(text) > LONGEST_WORD:
        return _Bad(f"has {len(text)} characters; at most {LONGEST_WORD} are allowed.")
    for character in text:
        if unicodedata.category(character) in _HIDDEN and character not in _SPELLING:
            return _Bad(
                f"holds U+{ord(character):04X}, a control or invisible character; remove it."
            )
    return None if has_words(text) else _Bad("has no letter or digit. Add at least one.")


def _one_of(fields: Mapping[str, Any], name: str, known: list[Any]) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not str or value not in known:
        names = " or ".join(f"'{each}'" for each in known)
        raise InvalidField(f"'{name}' must be {names}.", param=name)
    return value
