"""What the load generator received: whether an answer is complete, and what is wrong with it."""

from __future__ import annotations

from benchmarks.payloads import STREAM_END, events_of


def is_complete(answer: bytes) -> bool:
    """Whether the body has the length that the head announces, or ends with the last chunk."""
    head, separator, body = answer.partition(b"\r\n\r\n")
    if not separator:
        return False
    lowered = head.lower()
    place = lowered.find(b"content-length:")
    if place < 0:
        return answer.endswith(STREAM_END)
    return len(body) >= int(lowered[place + 15 :].split(b"\r\n", 1)[0])


def status_complaint(answer: bytes) -> str | None:
    """What is wrong with the status, or None."""
    if answer.startswith(b"HTTP/1.1 200 "):
        return None
    return answer[:300].decode("latin-1")


def stream_complaint(answer: bytes, tokens: int, *, exact: bool) -> str | None:
    """What is wrong with a stream of ``tokens``; ``exact``: it has the stub's events and no others."""
    if complaint := status_complaint(answer):
        return complaint
    events = events_of(tokens)
    if answer.count(b"data: ") == events and answer.count(b"data: [DONE]\n\n") == 1:
        return None
    # A relay may cut its HTTP chunks anywhere, also inside an event.
    body = dechunked(answer.partition(b"\r\n\r\n")[2])
    found = body.count(b"data: ")
    is_whole = found == events if exact else found >= tokens
    if is_whole and body.endswith(b"data: [DONE]\n\n"):
        return None
    return f"a stream had {found} events, not {events}"


def dechunked(body: bytes) -> bytes:
    """The content of a body in HTTP chunks (RFC 9112, 7.1)."""
    parts: list[bytes] = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(rest[:length])
        body = rest[length + 2 :] if length else b""
    return b"".join(parts)
