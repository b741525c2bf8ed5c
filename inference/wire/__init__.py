"""The request body of ``POST /v1/chat/completions``, from bytes to checked fields and back.

``parse_body`` -> ``model_of`` -> ``ChatRequest.from_fields`` -> ``ChatRequest.backend_body``: these
are separate steps because the model is looked up before the other fields are validated.
"""

from __future__ import annotations

from core.asgi.json_object import MAX_NESTING
from inference.wire.request import (
    ChatRequest,
    Shape,
    glimpse_model,
    model_of,
    parse_body,
)

__all__ = ["MAX_NESTING", "ChatRequest", "Shape", "glimpse_model", "model_of", "parse_body"]
