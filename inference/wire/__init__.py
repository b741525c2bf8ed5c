"""The request body of ``POST /v1/chat/completions``, from bytes to checked fields and back.

``parse_body`` -> ``model_of`` -> ``ChatRequest.from_fields`` -> ``ChatRequest.backend_body``: these
are separate steps because the model is looked up before the other fields are validated.
"""

from __future__ import annotations

from inference.wire.body import MAX_NESTING, glimpse_model, model_of, parse_body
from inference.wire.request import ChatRequest, Shape

__all__ = ["MAX_NESTING", "ChatRequest", "Shape", "glimpse_model", "model_of", "parse_body"]
