"""Sanitizes text for espeak-ng.

espeak-ng 1.52 crashes on some texts (very long unbroken tokens, letters of partly supported
scripts) and reads stray markup. So only characters known to be safe pass: with a list of forbidden
ones, prototypes still crashed. Markup is not interpreted: ``<`` and ``&`` are spoken.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

from speech.text.sentences import clauses

LONGEST_RUN = 40
"""Longest run of characters without a space; a longer one is broken up."""

LONGEST_PORTION = 360
"""Most characters of one order to a worker: a whole utterance, grown a little by sanitizing."""

_ALLOWED = (
    "\x20-\x7e"  # printable ASCII
    "\u00a2-\u00a5\u20ac\u20b9"  # cent, pound, currency, yen, euro, rupee
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017f"  # letters of Latin-1 and Latin Extended-A
    "\u0901-\u0903\u0905-\u0939\u093c-\u094d\u0950\u0958-\u0960\u0964-\u096f"  # Devanagari
    "\u200c\u200d"  # joiners, which Devanagari spells with
)
_FORBIDDEN = re.compile(f"[^{_ALLOWED}]")
_REPEATED = re.compile(r"(\D)\1{4,}")
"""Runs of digits are kept: a shorter one would be another number."""
_UNBROKEN = re.compile(rf"\S{{{LONGEST_RUN}}}(?=\S)")
_MARK = "[\u0901-\u0903\u093c\u093e-\u094d\u200c\u200d]"
# A sign that belongs to no Devanagari letter crashes the Hindi rules: "'-\u094d.\u094d" does.
_STRAY_MARKS = re.compile(rf"(?<![\u0901-\u0963\u200c\u200d]){_MARK}+|(?<={_MARK}{{3}}){_MARK}+")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"[A-Za-z0-9\u0901-\u0903\u0905-\u0939\u093c-\u094d\u0958-\u0960\u0966-\u096f]+")
_LONGEST_PLAIN_WORD = 20

_SPELT = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201a": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\u00ab": '"',
        "\u00bb": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": " - ",
        "\u2014": " - ",
        "\u2015": " - ",
        "\u2212": "-",
        "\u2026": "...",
        # Their nearest characters mean something else: 12, an equals sign.
        "\u2044": "/",
        "\u2215": "/",
        "\u00f7": "/",
        "\u00d7": "x",
        "\u00b1": "+-",
        "\u2260": "!=",
        "\u2264": "<=",
        "\u2265": ">=",
        "\u2248": "~",
        "\u0972": "\u0905\u0945",  # the letter of app and apple, as other Devanagari ones of its sound
    }
)


def sanitized(text: str) -> str:
    """``text`` with every unknown character spelt in known ones or left out."""
    text = unicodedata.normalize("NFC", text).translate(_SPELT)
    text = _FORBIDDEN.sub(_nearest, text)
    text = _STRAY_MARKS.sub("", text)
    text = _REPEATED.sub(r"\1\1\1\1", text)
    text = _UNBROKEN.sub(lambda run: run[0] + " ", text)
    text = _STRAY_MARKS.sub("", text)
    return _SPACES.sub(" ", text).strip()


_SCRIPTS: Final = {
    "CJK": "Chinese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
}
"""Names of scripts where Unicode has another."""
_SCRIPT = re.compile(
    r"(?P<script>CJK|[A-Z][A-Z -]*?)"
    r" (?:(?:SMALL|CAPITAL|VOWEL|INDEPENDENT|FINAL) )*"
    r"(?:LETTER|SYLLABLE|SYLLABICS|CHARACTER|(?:UNIFIED|COMPATIBILITY) IDEOGRAPH)\b"
)
"""The name of a letter, as Unicode has it: ``CYRILLIC SMALL LETTER A``."""
_NO_SCRIPTS: Final = frozenset(["LATIN", "DEVANAGARI", "MODIFIER"])
"""Of these two scripts most letters are read; a modifier letter belongs to any script."""


def unread_letters(text: str) -> str | None:
    """What a text is written in of whose letters and digits none can be read, such as "the Chinese
    script" or "these letters"; None if one can be read."""
    letters = dict.fromkeys(filter(str.isalnum, unicodedata.normalize("NFC", text)))
    if not letters or any(map(str.isalnum, _FORBIDDEN.sub(_nearest, "".join(letters)))):
        return None
    [(script, _)] = Counter(map(_script, letters)).most_common(1)
    return "these letters" if script is None else f"the {script} script"


def _script(letter: str) -> str | None:
    named = _SCRIPT.match(unicodedata.name(letter, ""))
    if named is None or named["script"] in _NO_SCRIPTS:
        return None
    return _SCRIPTS.get(named["script"], named["script"].title())


def _nearest(match: re.Match[str]) -> str:
    """Spell an unknown character in known ones (a fullwidth digit, a ligature), else as a space.

    A raised digit or a fraction gets spaces: beside a number it would make another number.
    """
    parts = unicodedata.normalize("NFKD", match[0]).translate(_SPELT)
    if not match[0].isdecimal() and any(map(str.isdecimal, parts)):
        return f" {_FORBIDDEN.sub('', parts)} "
    return _FORBIDDEN.sub("", parts) or ("" if unicodedata.combining(match[0]) else " ")


def portions(text: str) -> list[str]:
    """Cut ``sanitized`` text, at clauses or spaces, to at most ``LONGEST_PORTION`` characters."""
    return [portion.strip() for portion in clauses(text, LONGEST_PORTION)]


def plain_words(text: str) -> str:
    """Keep only the words, each cut short, to retry a text that crashed espeak-ng."""
    return " ".join(word[0][:_LONGEST_PLAIN_WORD] for word in _WORD.finditer(text))
