"""Whether a text is SSML, told from its beginning, of which a stream may have only a part."""

from __future__ import annotations

import re
from typing import Final

DECLARATION: Final = re.compile(r"<\?xml\s[^<>]{0,200}\?>")
"""The declaration of XML, which may stand before the document."""

_BEFORE = re.compile(rf"[\s\ufeff]*+(?:{DECLARATION.pattern}\s*+)?")
_HALF_DECLARATION = re.compile(r"<(?:\?(?:x(?:m(?:l(?:\s[^<>]{0,201})?)?)?)?)?\Z")
_NAMES: Final = ("<speak", "<!DOCTYPE speak")
"""How a document begins. The second one is refused, and not read aloud."""

_BEGIN = re.compile(rf"(?:{'|'.join(_NAMES)})(?=[\s/>])")


def is_ssml(text: str) -> bool:
    """Whether ``text`` begins with ``<speak``, after a byte order mark or the declaration of XML."""
    return _BEGIN.match(text, _after_declaration(text)) is not None


def may_be_ssml(text: str) -> bool:
    """Whether only the text that follows ``text`` says if it ``is_ssml``."""
    begun = text[_after_declaration(text) :]
    if _HALF_DECLARATION.match(begun):
        return True
    return any(name.startswith(begun) for name in _NAMES)


def _after_declaration(text: str) -> int:
    before = _BEFORE.match(text)
    return before.end() if before else 0
