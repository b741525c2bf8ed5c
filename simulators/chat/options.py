"""The options of the simulator: those of the command line, and those of one request.

Parses ``[[sim key=value ...]]`` in the last message of the user.

The directive is in the text because a gateway passes nothing else on unchanged. It counts as part
of the prompt, but the answer does not depend on it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from simulators.chat.dialects import parse_dialect
from simulators.chat.faults import NO_FAULTS, Faults, parse_faults

DEFAULT_MODEL = "simulated"


@dataclass(frozen=True, slots=True)
class Options:
    """The command line of ``simulate_backend``.

    ``tokens_per_second`` 0 means no delay; ``first_token_delay`` is in seconds. If ``models`` is
    empty, every name is served. ``record`` is a file that gets one JSON line per request.
    ``dialect`` is a name of ``dialects.DIALECTS``, or ``none``. ``prefix_cache``: the usage tells how
    many tokens of a prompt were kept from earlier ones with the same ``cache_salt``.
    """

    host: str = "127.0.0.1"
    port: int = 9000
    models: tuple[str, ...] = ()
    tokenizer: str = "o200k_base"
    tokens_per_second: float = 0.0
    first_token_delay: float = 0.0
    faults: Faults = NO_FAULTS
    dialect: str = "none"
    continuous_usage: bool = True
    prefix_cache: bool = False
    api_key: str | None = None
    record: Path | None = None


MAX_TOKENS = 200_000
_DIRECTIVE = re.compile(r"\[\[sim\b([^\]]*)\]\]")


class BadDirective(ValueError):
    """An invalid directive; the message says what is expected."""


@dataclass(frozen=True, slots=True)
class Directive:
    """The simulator options of one request; None means the value of the command line.

    ``tokens`` and ``reasoning`` are lengths in tokens, ``pace`` is in tokens per second (0: no
    delay), ``first`` is the time to the first token in seconds, ``burst`` is frames per write,
    ``dialect`` is a name of ``dialects.DIALECTS``, or ``none``.
    """

    tokens: int | None = None
    pace: float | None = None
    first: float | None = None
    reasoning: int | None = None
    burst: int | None = None
    fault: Faults | None = None
    dialect: str | None = None


_KEYS = tuple(field.name for field in fields(Directive))


def read_directive(text: str) -> tuple[str, Directive]:
    """Return ``text`` without its directives, and the directive; later values win.

    Raises ``BadDirective``.
    """
    values: dict[str, Any] = {}
    for match in _DIRECTIVE.finditer(text):
        for setting in match[1].split():
            key, equals, value = setting.partition("=")
            if not equals or key not in _KEYS:
                raise BadDirective(
                    f"[[sim]] does not know {setting!r}. Use key=value with {', '.join(_KEYS)}."
                )
            values[key] = _parse_value(key, value)
    return _DIRECTIVE.sub("", text).strip(), Directive(**values)


def _parse_value(key: str, value: str) -> int | float | str | Faults:
    if key == "dialect":
        try:
            parse_dialect(value)
        except ValueError as error:
            raise BadDirective(f"[[sim dialect]]: {error}") from None
        return value
    if key == "fault":
        try:
            return parse_faults(value)
        except ValueError as error:
            raise BadDirective(f"[[sim fault]]: {error}") from None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    least = 1 if key == "burst" else 0
    if not least <= number < math.inf:
        raise BadDirective(f"[[sim {key}]] must be a number of at least {least}.")
    if key in ("pace", "first"):
        return number
    if number > MAX_TOKENS or number != int(number):
        raise BadDirective(f"[[sim {key}]] must be a whole number up to {MAX_TOKENS}.")
    return int(number)
