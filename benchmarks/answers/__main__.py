"""``python -m benchmarks.answers CHECKOUT > FILE``: record the answers of a checkout as JSON.

Starts the gateway and the simulator of CHECKOUT, sends the same list of requests to both surfaces,
one after the other, and prints each status, header and body without ids, times and samples. The
answers of two checkouts are then compared by ``diff``.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.answers import normalised, session_cases
from benchmarks.answers.cases import Case, content, get, speech
from benchmarks.answers.chat_cases import chat_cases
from benchmarks.answers.other_cases import (
    catalog_cases,
    clone_cases,
    speech_cases,
    usage_cases,
)
from benchmarks.answers.servers import Servers, running

_SECONDS = 30.0
_CLIP = "One two three four five six seven eight nine ten. The quick brown fox is here."


def answer(servers: Servers, case: Case) -> tuple[http.client.HTTPResponse, bytes]:
    """Send ``case`` on a connection of its own and return the response and its body."""
    connection = http.client.HTTPConnection("127.0.0.1", servers.ports[case.surface], _SECONDS)
    connection.putrequest(case.method, case.path, skip_accept_encoding=True)
    if case.key is not None:
        connection.putheader("authorization", f"Bearer {servers.keys[case.key]}")
    for name, value in case.headers.items():
        connection.putheader(name, value)
    if case.body is not None:
        connection.putheader("content-length", str(len(case.body)))
    connection.endheaders()
    with contextlib.suppress(OSError):  # refused before it was read; the answer is there
        connection.send(case.body or b"")
    response = connection.getresponse()
    try:
        body = response.read()
    except http.client.IncompleteRead as cut:
        body = cut.partial + b"<cut>"
    connection.close()
    return response, body


def recorded(servers: Servers, case: Case) -> dict[str, Any]:
    """Return the normalised answer to ``case``."""
    try:
        response, body = answer(servers, case)
    except (OSError, http.client.HTTPException) as error:
        return {"connection": type(error).__name__}
    length = None if case.method == "HEAD" else len(body)
    return {
        "status": response.status,
        "headers": normalised.headers(response.getheaders(), length),
        "body": normalised.body(body, response.getheader("content-type", "")),
    }


def recorded_session(servers: Servers, key: str | None, sent: list[Any], path: str) -> Any:
    """Return the normalised session."""
    secret = None if key is None else servers.keys[key]
    session = session_cases.run(servers.ports["speech"], secret, sent, path)
    if session.refused is not None:
        status, headers, body = session.refused
        return {
            "status": status,
            "headers": normalised.headers(headers, len(body)),
            "body": normalised.body(body, "application/json"),
        }
    return {
        "messages": [
            normalised.text(each) if isinstance(each, str) else f"sound: {each[:4].hex()}"
            for each in session.messages
        ],
        "close": session.close,
    }


def answers(servers: Servers) -> Iterator[tuple[str, Any]]:
    """Yield the name of each request and its normalised answer."""
    for case in (*chat_cases(), *catalog_cases(), *usage_cases(), *speech_cases()):
        yield case.name, recorded(servers, case)
    yield from _clones(servers)
    for name, sent in session_cases.SESSIONS.items():
        yield f"session: {name}", recorded_session(servers, "speech", sent, "stream")
    for key in (None, "inference", "revoked"):
        yield f"session: key {key}", recorded_session(servers, key, [], "stream")
    yield "session: unknown path", recorded_session(servers, "speech", [], "other")


def _clones(servers: Servers) -> Iterator[tuple[str, Any]]:
    spoken = {"voice": "ava", "input": _CLIP, "response_format": "wav"}
    _, clip = answer(servers, speech("clip", spoken))
    for case in clone_cases(clip):
        yield case.name, recorded(servers, case)
    _, listed = answer(servers, get("speech", "/v1/models", "speech"))
    clones = [each["id"] for each in json.loads(listed)["data"] if each["id"].startswith("voice_")]
    for number, clone in enumerate(clones):
        body = content({"voice": clone, "input": "Hello."})
        case = Case("", "speech", "POST", "/v1/audio/speech", "speech", body)
        yield f"clone {number}: spoken", recorded(servers, case)
        for time in ("first", "second"):
            deletion = get("speech", f"/v1/voices/{clone}", "speech", "DELETE")
            yield f"clone {number}: deleted, {time}", recorded(servers, deletion)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers")
    parser.add_argument("checkout", type=Path, help="the directory with its manage.py")
    checkout = parser.parse_args().checkout.resolve()
    with (
        tempfile.TemporaryDirectory(prefix="svc-answers-") as directory,
        running(checkout, Path(directory)) as servers,
    ):
        found = dict(answers(servers))
    json.dump(found, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
