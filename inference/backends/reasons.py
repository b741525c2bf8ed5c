"""Reads why a model server refused a request from its error body, in any server's dialect.

Reasons often say what to change ("maximum context length is ..."), so one short line of plain text
is passed on. Addresses and paths are cut out of it, because they are internal, and so is what the
gateway itself sent in a header or as a salt; a stack trace is dropped. The text is untrusted and may
quote a caller, so every step takes linear time, and all but plain searches see its beginning only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

_LONGEST: Final = 300
"""The most characters that are shown."""
_MOST_READ: Final = 2_000
"""The most characters that an expression sees."""
_CUT_MARGIN: Final = 300
"""Longer than an address, a model's name or a part of a path that the cut may have broken."""
_MOST_DETAILS: Final = 3
_MOST_NAMES: Final = 8
_DEEPEST: Final = 8
"""Objects and lists inside each other; known dialects nest three."""
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,19}://[^\s\"'<>()\[\]{}]*")
_IP_ADDRESS: Final = re.compile(r"(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{1,5})?(?![\w.])")
_OF_A_REQUEST: Final = r"(?!/(?:v[0-9]+|messages|tools|response_format|properties)/)"
_PATH: Final = re.compile(
    _OF_A_REQUEST + r"(?<![\w.:#/\\])(?:[A-Za-z]:\\|~?/)((?:[\w.@+-]+[/\\])+[\w.@+-]*)"
)
"""An absolute file path of two parts or more, but not a path of the API or a JSON pointer.

It takes whole runs of parts and never fails after one, so that no run is read twice.
"""
_ABILITY: Final = (
    r"(?:images?|pictures?|audio|videos?|vision|multi-?modal|tools?|tool calls?|tool use"
    r"|function calling|(?:system|developer|assistant|user|tool) (?:role|message|prompt)s?)"
)
_THING: Final = (
    r"(?: (?:inputs?|parts?|contents?|types?|urls?|files?|messages?|calls?|choices?|parameters?))?"
)
_IMPOSSIBLE: Final = re.compile(
    rf"\b{_ABILITY}{_THING}(?: is| are)? (?:not supported|unsupported)\b"
    r"|\b(?:model|server|template|endpoint)\b[^.;:]{0,60} (?:does not|doesn't) support\b[^.;:]{0,40}"
    rf"\b{_ABILITY}\b"
    r"|\broles (?:are supported|must alternate)\b"
    r"|\b(?:exceeds|longer than|larger than)\b[^.;]{0,80}\bcontext (?:size|length|window)\b"
    r"|\bmaximum context length is\b",
    re.IGNORECASE,
)
"""What servers say of a request that no repetition makes possible: an input or a role that the model
does not have, or a prompt beyond its context. llama.cpp's "Context size has been exceeded" is not one:
requests beside it may have taken the room."""
_FAILURE: Final = re.compile(
    r"\b(?:CUDA|OOM|out of memory|crash(?:ed)?|killed|driver|device|retry)\b", re.IGNORECASE
)
"""What servers say when they failed themselves."""
_QUOTED: Final = re.compile(r"""\"[^"]*"?|(?<!\w)'[^']*'?|`[^`]*`?""")
_TEMPLATE: Final = re.compile(
    r"^-+\nWhile executing \w+ at line \d+, column \d+ in source:$", re.MULTILINE
)
_TEMPLATE_REFUSAL: Final = "\nError: Jinja Exception: "
"""Before what a model's chat template says of messages that it refuses (llama.cpp). The template's
source stands before it, which is not shown."""
_SALT: Final = re.compile(r"(cache_salt[\\\"']{1,4} ?: ?[\\\"']{1,4})[A-Za-z0-9_-]{1,43}")
"""The salt of an organization (``cache_salt``) in a body that is quoted as JSON or by Python."""
_SHORTEST_SECRET: Final = 8
"""Characters; a shorter value ("prod", "EMPTY") protects nothing, and is in ordinary words."""
_CUT: Final = "[address]"
_CUT_PATH: Final = "[path]"
_CUT_VALUE: Final = "[secret]"
_VALUE_MARK: Final = "\ufffc"
"""Stands for a value until addresses are cut out: one may be in the middle of an address."""
_THE_MODEL: Final = "the model"
_PUNCTUATION: Final = ".,;:!?"


def secrets_in(headers: Mapping[str, str]) -> list[str]:
    """Return what must not be shown of a backend's ``headers``, the longest first.

    These are the values and, where one has a scheme ("Bearer KEY"), the key alone; also as JSON
    escapes them. A value or key of fewer than 8 characters is left out.
    """
    values = {
        part.strip() for value in headers.values() for part in (value, value.partition(" ")[2])
    }
    escaped = {json.dumps(value)[1:-1] for value in values}
    found = [value for value in values | escaped if len(value) >= _SHORTEST_SECRET]
    return sorted(found, key=len, reverse=True)


def without_secrets(text: str, secrets: Collection[str]) -> str:
    """Replace every occurrence of ``secrets``, the longest of which comes first."""
    return _marked(text, secrets).replace(_VALUE_MARK, _CUT_VALUE)


def impossible_in(body: bytes, model: str = "", secrets: Collection[str] = ()) -> str | None:
    """Return the reason (``reason_in``) of a server error that calls the request impossible.

    None when ``body`` does not say so: then the server failed.
    """
    said = _said(body)
    if not _refused_by_template(said):
        own = _QUOTED.sub("", said[:_MOST_READ])
        if _FAILURE.search(own) or not _IMPOSSIBLE.search(own):
            return None
    return _shown(said, model, secrets)


def reason_in(body: bytes, model: str = "", secrets: Collection[str] = ()) -> str | None:
    """Return the reason as one line of plain text, or None when ``body`` has none to show.

    ``model`` is the backend's own name for the model, which is replaced where it is a word;
    ``secrets`` (``secrets_in``) are replaced everywhere.
    """
    return _shown(_said(body), model, secrets)


def _refused_by_template(said: str) -> bool:
    return _TEMPLATE_REFUSAL in said and _TEMPLATE.search(said[:_MOST_READ]) is not None


def _said(body: bytes) -> str:
    try:
        return _message(msgspec.json.decode(body), _DEEPEST)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def _shown(said: str, model: str, secrets: Collection[str]) -> str | None:
    if "Traceback" in said or 'File "' in said:
        return None
    if _refused_by_template(said):
        said = said.partition(_TEMPLATE_REFUSAL)[2]
    # Before the cut, which could leave half of a secret.
    said = _marked(said, secrets)
    text = _plain(said[:_MOST_READ], model)
    if len(said) > _MOST_READ:
        text = _without_the_broken_end(text)
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rstrip() + "…"
    return text or None


def _marked(text: str, secrets: Collection[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, _VALUE_MARK)
    return text


def _plain(said: str, model: str) -> str:
    """Return ``said`` on one line, without the model's name, addresses and paths."""
    text = "".join(character if character.isprintable() else " " for character in said)
    text = _SALT.sub(rf"\1{_VALUE_MARK}", " ".join(text.split()))
    text = _replace_word(text, model, _THE_MODEL)
    text = _PATH.sub(_cut_path, _IP_ADDRESS.sub(_CUT, _URL.sub(_cut, text)))
    return text.replace(_VALUE_MARK, _CUT_VALUE)


def _without_the_broken_end(text: str) -> str:
    """Drop the end of a text that was cut: half of a name, address or path may stand there."""
    if text.rstrip(_PUNCTUATION).endswith((_CUT, _CUT_PATH)):
        return text + "…"
    kept = max(len(text) - _CUT_MARGIN, 0)
    text = text[: max(text.rfind(" ", kept), kept)].rstrip()
    return text and text + "…"


def _replace_word(text: str, word: str, new: str) -> str:
    """Replace ``word`` where it does not stand inside another one: "m" stays in "upstream"."""
    if not word:
        return text
    pieces, copied, start = [], 0, 0
    while (at := text.find(word, start)) >= 0:
        end = at + len(word)
        if _inside_a_word(text, at) or _inside_a_word(text, end):
            start = at + 1
            continue
        pieces += [text[copied:at], new]
        copied = start = end
    return "".join([*pieces, text[copied:]])


def _inside_a_word(text: str, at: int) -> bool:
    """Whether ``at`` is between two letters, digits or underscores of ASCII."""
    return 0 < at < len(text) and all(
        each.isascii() and (each.isalnum() or each == "_") for each in text[at - 1 : at + 1]
    )


def _cut(url: re.Match[str]) -> str:
    """Cut an address; the punctuation after it belongs to the sentence and stays."""
    address = url[0]
    return _CUT + address[len(address.rstrip(_PUNCTUATION)) :]


def _cut_path(run: re.Match[str]) -> str:
    """Cut a path; slashes and punctuation after it stay, and so does a run of one part."""
    parts = run[1].rstrip("/\\.@+-")
    if "/" not in parts and "\\" not in parts:
        return run[0]
    return _CUT_PATH + run[1][len(parts) :]


def _message(body: Any, deepest: int) -> str:
    """Return the message of ``body``: under ``error`` (an object or a string), at the top level, or
    under ``detail`` as FastAPI writes it (a string, an object, or a list of failed fields)."""
    if isinstance(body, str):
        return body
    if deepest and isinstance(body, list):
        return "; ".join(filter(None, _fields(body[:_MOST_DETAILS], deepest - 1)))
    if deepest and isinstance(body, dict):
        for name in ("error", "message", "detail", "msg"):
            if said := _message(body.get(name), deepest - 1):
                return said
    return ""


def _fields(failed: list[Any], deepest: int) -> Iterator[str]:
    """Format failed fields as pydantic reports them: each one's location, and what is wrong."""
    for each in failed:
        said = _message(each, deepest)
        place = each.get("loc") if isinstance(each, dict) else None
        steps = place[:_MOST_NAMES] if isinstance(place, list) else []
        names = [str(step) for step in steps if isinstance(step, str | int) and step != "body"]
        yield f"{'.'.join(names)}: {said}" if said and names else said
