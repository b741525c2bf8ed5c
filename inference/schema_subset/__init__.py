"""The structured-output schema subset ``svc-json-schema-subset-v1``.

``violations`` lists the errors of a schema, ``check`` raises them. docs/api/schema-subset.md decides
points that the contract leaves open. Contract: inference, "Structured-output schema subset".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from core.errors import UnsupportedJsonSchema
from inference.schema_subset.tables import (
    ANNOTATIONS,
    MAX_DEPTH,
    MAX_SCHEMAS,
    REFUSED,
    STRUCTURAL,
    SUBSET_ID,
    TYPES,
    shown,
)
from inference.schema_subset.walk import Code, Finding, findings

__all__ = [
    "ANNOTATIONS",
    "LISTED_CHARACTERS",
    "LISTED_VIOLATIONS",
    "MAX_DEPTH",
    "MAX_SCHEMAS",
    "REFUSED",
    "STRUCTURAL",
    "SUBSET_ID",
    "TYPES",
    "Code",
    "Violation",
    "check",
    "violations",
]

LISTED_VIOLATIONS = 100
LISTED_CHARACTERS = 65_536
"""An error lists at most so many violations, and characters of their pointers: a small document
can break a rule very often, at very long pointers."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule. ``pointer`` is an RFC 6901 pointer into the caller's schema."""

    code: Code
    pointer: str
    message: str


def violations(schema: Any) -> list[Violation]:
    """Return every violation in ``schema``, in document order; none means it is in the subset.

    A document of more than ``MAX_SCHEMAS`` schemas is checked up to that bound, which is itself
    reported as a violation.
    """
    return [_violation(finding) for finding in findings(schema)]


def check(schema: Any, name: str | None, *, strict: bool | None = True) -> None:
    """Raise ``UnsupportedJsonSchema`` when ``schema`` is outside the subset.

    ``name`` and ``strict`` come with the schema; neither changes what is accepted, and the message
    says so to a caller who did not ask for ``strict``. The message names the first violation, and
    ``extra["violations"]`` lists them up to the bounds above. The document is not walked further.
    """
    found = list(islice(findings(schema), LISTED_VIOLATIONS + 1))
    if not found:
        return
    listed = _listed(found)
    first = listed[0]
    title = f"response_format '{shown(name)}'" if name else "response_format"
    place = f"at '{shown(first.pointer, 200)}'" if first.pointer else "at the root"
    many = f"more than {LISTED_VIOLATIONS}" if len(found) > LISTED_VIOLATIONS else len(found)
    count = f" (1 of {many} problems)" if len(found) > 1 else ""
    reminder = "" if strict else " These rules apply with and without 'strict'."
    raise UnsupportedJsonSchema(
        f"Invalid schema for {title}: {place}, {first.message}{count}{reminder}",
        # Without the names in the schema, which are the caller's words.
        kept=f"Invalid schema for response_format: {first.code}{count}{reminder}",
        extra={
            "violations": [
                {"code": str(each.code), "pointer": each.pointer, "message": each.message}
                for each in listed
            ]
        },
    )


def _violation(finding: Finding) -> Violation:
    return Violation(finding.code, finding.path.pointer(), finding.message)


def _listed(found: list[Finding]) -> list[Violation]:
    listed = [_violation(found[0])]
    room = LISTED_CHARACTERS - len(listed[0].pointer)
    for finding in found[1:LISTED_VIOLATIONS]:
        violation = _violation(finding)
        room -= len(violation.pointer)
        if room < 0:
            break
        listed.append(violation)
    return listed
