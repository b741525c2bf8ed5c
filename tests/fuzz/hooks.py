"""What Schemathesis must know of the gateway under test and no schema can say."""

from __future__ import annotations

import os
from typing import Any

import schemathesis

MODEL = os.environ.get("SVC_FUZZ_MODEL", "")
"""A model that is served. Made-up ones are 404 before anything else is looked at."""


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Ask a model that is there where any non-empty text would do."""
    body = case.body
    if isinstance(body, dict) and isinstance(model := body.get("model"), str) and model:
        case.body = {**body, "model": MODEL}
