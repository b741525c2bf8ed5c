"""Replaces what differs between two runs of the same gateway: ids, times, samples of speech."""

from __future__ import annotations

import re
from typing import Any, Final

RULES: Final[tuple[tuple[str, str], ...]] = (
    (r"req_[0-9a-f]{32}", "req_ID"),
    (r"chatcmpl-[0-9a-f]{32}", "chatcmpl-ID"),
    (r"(call_|chatcmpl-tool-)[0-9a-f]{32}", r"\1ID"),
    (r"call_[0-9a-f]{24}(\d)\b", r"call_ID\1"),
    (r"voice_[0-9a-f]{32}", "voice_ID"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r'"created": ?\d+', '"created":TIME'),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME"),
    (r'(_ms"): ?[\d.]+', r"\1:MS"),
    (r"([Tt]ry again in) [\d.]+( s|[hms\d.]+)", r"\1 DURATION"),
    (r'"uptime_s": ?[\d.]+', '"uptime_s":S'),
    (r"header promises \d+ bytes", "header promises N bytes"),
    (r'"reference_seconds": ?[\d.]+', '"reference_seconds":S'),
    (r'"api_key_prefix": ?"[^"]+"', '"api_key_prefix":"KEY"'),
    (r'"next_cursor": ?"[^"]+"', '"next_cursor":"CURSOR"'),
    (r'"audio": ?"[^"]+"', '"audio":"SOUND"'),
    (r"usage-([a-z]+)-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d", r"usage-\1-PERIOD"),
)
_RULES = tuple((re.compile(pattern), replacement) for pattern, replacement in RULES)
_CSV_TIMES = re.compile(r",\d*,\d+$", re.MULTILINE)
_VOLATILE = re.compile(
    r"date|x-upstream-ms|x-gateway-ms|retry-after(-ms)?|x-ratelimit-reset-.*|etag|last-modified"
)


def text(of: str) -> str:
    """Return ``of`` without what differs from run to run."""
    for pattern, replacement in _RULES:
        of = pattern.sub(replacement, of)
    return of


def headers(of: list[tuple[str, str]], length: int | None) -> list[str]:
    """Return the header lines in their order.

    ``length`` is the number of bytes of the body; None if the request asked for none (HEAD).
    """
    lines = []
    for name, value in of:
        shown = text(value)
        if name.lower() == "content-length":
            shown = (
                "LENGTH"
                if length is None or value == str(length)
                else f"{value}, but {length} bytes"
            )
        elif _VOLATILE.fullmatch(name.lower()):
            shown = "VALUE"
        lines.append(f"{name}: {shown}")
    return lines


def body(of: bytes, content_type: str) -> Any:
    """Return the body as lines of text; of sound, only the first bytes of the file."""
    if content_type.startswith("audio/"):
        # Samples differ from run to run, and so does the length of an encoded file.
        start = "samples" if content_type.startswith("audio/pcm") else of[:4].hex()
        return f"sound: {start}" if of else "no sound"
    shown = text(of.decode("utf-8", "backslashreplace"))
    if content_type.startswith("text/csv"):
        shown = _CSV_TIMES.sub(",MS,MS", shown)
    elif not content_type.startswith("text/event-stream"):
        shown = shown.replace("},{", "},\n{")  # so that a difference is a short line
    lines = shown.split("\n")
    # One sentence may come in more pieces in one run than in another.
    return [
        line
        for number, line in enumerate(lines)
        if "SOUND" not in line or number < 2 or line != lines[number - 2]
    ]
