"""Text that espeak-ng can be given.

espeak-ng 1.52 crashes on some texts (very long unbroken tokens, letters of scripts it half knows)
and reads stray markup. Only characters known to be safe go through; a list of forbidden ones was
tried on prototypes and still crashed. Nothing here knows markup: ``<`` and ``&`` are spoken.
"""

from __future__ import annotations

import re
import unicodedata

from speech.text.sentences import clauses

LONGEST_RUN = 40
"""Longest stretch without a space; a longer one is broken up."""

LONGEST_PORTION = 360
"""Most characters in one order to a worker: a whole utterance, which may have grown a little."""

_ALLOWED = (
    "\x20-\x7e"  # printable ASCII
    "\u00a2-\u00a5\u20ac\u20b9"  # cent, pound, currency, yen, euro, rupee
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017f"  # letters of Latin-1 and Latin Extended-A
    "\u0901-\u0903\u0905-\u0939\u093c-\u094d\u0950\u0958-\u0960\u0964-\u096f"  # Devanagari
    "\u200c\u200d"  # joiners, which Devanagari spells with
)
_FORBIDDEN = re.compile(f"[^{_ALLOWED}]")
_REPEATED = re.compile(r"(\D)\1{4,}")
"""Digits are left: a shorter run of them would be another number."""
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
        # Their nearest characters would say something else: 12, an equals sign.
        "\u2044": "/",
        "\u2215": "/",
        "\u00f7": "/",
        "\u00d7": "x",
        "\u00b1": "+-",
        "\u2260": "!=",
        "\u2264": "<=",
        "\u2265": ">=",
        "\u2248": "~",
    }
)


def sanitized(text: str) -> str:
    """The text with everything else than known characters spelt plainly or left out."""
    text = unicodedata.normalize("NFC", text).translate(_SPELT)
    text = _FORBIDDEN.sub(_nearest, text)
    text = _STRAY_MARKS.sub("", text)
    text = _REPEATED.sub(r"\1\1\1\1", text)
    text = _UNBROKEN.sub(lambda run: run[0] + " ", text)
    text = _STRAY_MARKS.sub("", text)
    return _SPACES.sub(" ", text).strip()


def _nearest(match: re.Match[str]) -> str:
    """An unknown character as known ones (a fullwidth digit, a ligature), else as a space.

    A raised digit or a fraction stands apart: beside a figure it would make another number.
    """
    parts = unicodedata.normalize("NFKD", match[0]).translate(_SPELT)
    if not match[0].isdecimal() and any(map(str.isdecimal, parts)):
        return f" {_FORBIDDEN.sub('', parts)} "
    return _FORBIDDEN.sub("", parts) or ("" if unicodedata.combining(match[0]) else " ")


def portions(text: str) -> list[str]:
    """``sanitized`` text cut to at most ``LONGEST_PORTION`` characters, at a clause or a space."""
    return [portion.strip() for portion in clauses(text, LONGEST_PORTION)]


def plain_words(text: str) -> str:
    """Only the words, each cut short: what a text that crashed espeak-ng is retried as."""
    return " ".join(word[0][:_LONGEST_PLAIN_WORD] for word in _WORD.finditer(text))
