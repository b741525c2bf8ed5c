"""What a check found, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

_WIDTH: Final = 10


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


class Finding(msgspec.Struct, frozen=True):
    """The result of one check of ``subject``; ``todo`` says what to do, and is empty where all is well."""

    state: State
    subject: str
    words: str
    todo: str = ""


def has_fault(findings: Sequence[Finding]) -> bool:
    return any(each.state is State.FAULT for each in findings)


def show(findings: Sequence[Finding], *, as_json: bool) -> str:
    """One line for each finding, or one JSON array; ends with a line end."""
    if as_json:
        return msgspec.json.encode(findings).decode() + "\n"
    return "".join(line_of(each) + "\n" for each in findings)


def line_of(finding: Finding) -> str:
    """The finding in one line."""
    line = f"{finding.state:8} {finding.subject:{_WIDTH}} {finding.words} {finding.todo}"
    return " ".join(line.splitlines()).rstrip()
