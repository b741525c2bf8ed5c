"""The options of the simulated speech server: those of the command line, and those of one request.

Parses ``[[sim key=value ...]]`` in a request's text, voice or model; ``key:value`` is the same.

A gateway sends the text normalised and sentence by sentence, but the name of a voice or a model as
the operator wrote it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, Final

from simulators.speech.faults import NO_FAULTS, Faults, parse_faults


@dataclass(frozen=True, slots=True)
class SpeechOptions:
    """If ``voices`` is empty, every name is served. ``delay`` is in seconds."""

    voices: tuple[str, ...] = ()
    api_key: str | None = None
    delay: float = 0.0
    faults: Faults = NO_FAULTS


SIZES: Final = ("exact", "zero", "max", "double", "half")
_DIRECTIVE: Final = re.compile(r"\[\[sim\b([^\]]*)\]\]")
_RANGES: Final = {
    "rate": (8_000, 192_000),
    "type_rate": (1, 999_999_999),
    "header_rate": (1, 999_999_999),
    "channels": (1, 2),
    "piece": (1, 1 << 20),
    "first": (0, 3600),
    "pace": (0, 1000),
}


class BadDirective(ValueError):
    """An invalid directive; the message says what is expected."""


@dataclass(frozen=True, slots=True)
class Directive:
    """The simulator options of one request; None means the value of the command line.

    ``rate`` and ``channels`` are those of the sound; ``type_rate`` and ``header_rate`` are the rates
    in the answer's ``Content-Type`` and ``X-Sample-Rate``. ``sizes`` are the sizes in a file's
    header, ``piece`` is bytes per write, ``first`` is seconds before the first one, ``pace`` is
    seconds of sound per second (0: no delay).
    """

    rate: int = 24_000
    type_rate: int | None = None
    header_rate: int | None = None
    channels: int = 1
    sizes: str | None = None
    piece: int = 4096
    first: float | None = None
    pace: float = 0.0
    fault: Faults | None = None


_KEYS = tuple(field.name for field in fields(Directive))


def read_directive(*texts: str) -> Directive:
    """Parse the directives in ``texts``; later values win. Raises ``BadDirective``."""
    values: dict[str, Any] = {}
    for text in texts:
        for match in _DIRECTIVE.finditer(text):
            for setting in match[1].split():
                # A gateway writes "equals" for "=" in a text before it is spoken.
                key, equals, value = setting.replace(":", "=", 1).partition("=")
                if not equals or key not in _KEYS:
                    raise BadDirective(
                        f"[[sim]] does not know {setting!r}. Use key=value with {', '.join(_KEYS)}."
                    )
                values[key] = _parse_value(key, value)
    return Directive(**values)


def without_directive(text: str) -> str:
    """Return ``text`` without its directives, which are not spoken."""
    return _DIRECTIVE.sub("", text).strip()


def _parse_value(key: str, value: str) -> Any:
    if key == "fault":
        try:
            return parse_faults(value)
        except ValueError as error:
            raise BadDirective(f"[[sim fault]]: {error}") from None
    if key == "sizes":
        if value not in SIZES:
            raise BadDirective(f"[[sim sizes]] is one of {', '.join(SIZES)}.")
        return value
    least, most = _RANGES[key]
    try:
        number = float(value) if key in ("first", "pace") else int(value)
    except ValueError:
        number = -1
    if not least <= number <= most:
        raise BadDirective(f"[[sim {key}]] must be a number from {least} to {most}.")
    return number
