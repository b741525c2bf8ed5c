"""Converts source code, between backticks or in a code block, to words."""

from __future__ import annotations

import re

_UNSPOKEN = re.compile(
    r"/{2,}|/?\*+/?|[-=~]>|<!?--+|--+>|={3,}|-{3,}"  # marks of comments, arrows, lines of signs
    r"|(?<![A-Z])#|!(?!=)(?=[\w(])|[~\\|^`{}\[\];\"]"
    r"|\$(?!\d)|@(?!\w)|(?<!\w)@|(?<!\d)%|(?<!\w)'|'(?!\w)"
    r"|(?<![^\W_])_+|_+(?![^\W_])|(?<=[a-zA-Z_)\]]):(?=\S)|:(?=[a-zA-Z_])"
)
_DOUBLED = re.compile(r"([=&])\1")
_JOINED = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")


def code_words(code: str) -> str:
    """Keep the names, figures and operators of ``code``; other signs become spaces.

    ``=``, ``+``, ``-``, ``&``, ``.`` between names and ``/`` are kept: a person reads them out.
    """
    code = _UNSPOKEN.sub(" ", code)
    code = _DOUBLED.sub(r"\1", code)
    return _JOINED.sub(" ", code)
