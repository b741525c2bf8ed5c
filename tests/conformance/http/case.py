"""One case of the HTTP/1.1 table: the bytes, and what the RFCs allow as an answer to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

HOST: Final = "Host: 127.0.0.1"
KEY: Final = "Authorization: Bearer {key}"
"""The engine puts the key of the surface in place of ``{key}``."""
CHAT: Final = json.dumps(
    {
        "model": "gpt-6-astra",
        "messages": [{"role": "user", "content": "say: hello"}],
        "max_completion_tokens": 16,
    }
)
SPEECH_STREAM: Final = "/v1/audio/speech/stream"


class After(Enum):
    """What becomes of the connection."""

    KEPT = "kept"
    CLOSED = "closed"
    EITHER = "either"


class On(Enum):
    """The surfaces that a case is tried on."""

    BOTH = "both"
    INFERENCE = "inference"
    SPEECH = "speech"


@dataclass(frozen=True)
class Case:
    """Bytes (in Latin-1) and what may come back.

    ``answers``: the statuses of each answer, such as ``400``, ``400|501`` or ``4xx``. ``interim``:
    whether a 100 (Continue) comes first. ``early``: what may also come where the second write has the
    fault, because the head was answered alone. ``headers``: lines that the last answer must have, in
    lower case, and ``without``: names that it must not have.
    """

    name: str
    section: str
    sent: str
    answers: tuple[str, ...]
    after: After = After.EITHER
    on: On = On.BOTH
    interim: bool = False
    no_body: bool = False
    early: str = ""
    headers: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def halves(self) -> tuple[str, str]:
        """Return the two writes of the case: cut behind the head, or in the middle of a head alone."""
        end = self.sent.find("\r\n\r\n") + 4
        at = end if 4 <= end < len(self.sent) else len(self.sent) // 2
        return self.sent[:at], self.sent[at:]


def get(*lines: str, target: str = "/v1/models", version: str = "HTTP/1.1", end: str = "") -> str:
    """Write a GET with Host and key and ``lines``, and what follows its head."""
    return request(f"GET {target} {version}", HOST, KEY, *lines, end=end)


def post(*lines: str, body: str, version: str = "HTTP/1.1") -> str:
    """Write a chat request with ``lines``, which must frame ``body``."""
    return request(f"POST /v1/chat/completions {version}", HOST, KEY, *lines, end=body)


def request(line: str, *lines: str, end: str = "") -> str:
    """Write a request line, header lines and what follows them."""
    return "\r\n".join((line, *lines)) + "\r\n\r\n" + end


def chat(*lines: str, version: str = "HTTP/1.1") -> str:
    """Write a valid chat request with a length."""
    return post(f"Content-Length: {len(CHAT)}", *lines, body=CHAT, version=version)


def chunked(body: str, *lines: str, version: str = "HTTP/1.1") -> str:
    """Write a chat request in chunks, which ``body`` has with their framing."""
    return post("Transfer-Encoding: chunked", *lines, body=body, version=version)


def chunks(*parts: str, last: str = "0\r\n\r\n") -> str:
    """Frame ``parts`` as chunks."""
    return "".join(f"{len(part):x}\r\n{part}\r\n" for part in parts) + last


def served(name: str, section: str, sent: str, **more: object) -> Case:
    """Make a case that is answered with 200 on a connection that is kept."""
    return replace(Case(name, section, sent, ("200",), After.KEPT), **more)  # type: ignore[arg-type]


def ended(name: str, section: str, sent: str, **more: object) -> Case:
    """Make a case that is answered with 200 on a connection that is closed then."""
    return served(name, section, sent, after=After.CLOSED, **more)


def refused(name: str, section: str, sent: str, status: str = "400", **more: object) -> Case:
    """Make a case that is refused on a connection that is closed."""
    return replace(Case(name, section, sent, (status,), After.CLOSED), **more)  # type: ignore[arg-type]


def only(on: On, cases: Iterable[Case]) -> Iterator[Case]:
    """Yield ``cases`` as those of one surface."""
    return (replace(case, on=on) for case in cases)
