"""What Schemathesis must know of the gateway under test and no schema can say.

What is made up is refused before anything else is looked at, so any non-empty text that stands for
something real is replaced by something that is there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import schemathesis

CLIP = os.environ.get("SVC_FUZZ_CLIP")
REAL = {
    "model": os.environ.get("SVC_FUZZ_MODEL"),
    "voice": os.environ.get("SVC_FUZZ_VOICE"),
    "audio_b64": Path(CLIP).read_text() if CLIP else None,
}


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    body = case.body
    if isinstance(body, dict):
        found = {name: real for name, real in REAL.items() if real and _stands_for_one(body, name)}
        case.body = {**body, **found}


def _stands_for_one(body: dict[str, Any], name: str) -> bool:
    value = body.get(name)
    return isinstance(value, str) and value != ""
