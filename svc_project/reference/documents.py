"""The OpenAPI documents as the docs show them: operations with examples, links to errors, and answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from svc_project.openapi import DOCUMENTS
from svc_project.openapi_consumers import MANAGEMENT
from svc_project.reference import examples
from svc_project.reference.operations import Anchors, Beside, Operation, operations
from svc_project.reference.recordings import by_operation
from svc_project.surfaces import Surface

_EXAMPLES: Final = {
    Surface.INFERENCE: examples.inference_examples,
    Surface.SPEECH: examples.speech_examples,
    MANAGEMENT: examples.management_examples,
}
BASE_URLS: Final = {
    Surface.INFERENCE: examples.INFERENCE,
    Surface.SPEECH: examples.SPEECH,
    MANAGEMENT: examples.MANAGEMENT,
}
_NO_CODE: Final = {
    "invalid_request_error": "invalid-field",
    "authentication_error": "invalid-credential",
    "not_found_error": "not-found",
}
"""Where the errors are explained that an operation of the inference surface names by their type."""
_BY_CODE: Final[Anchors] = lambda _status, name: _NO_CODE.get(name, name)  # noqa: E731  # typed
_ANCHORS: Final[Mapping[str, Anchors]] = {
    Surface.INFERENCE: _BY_CODE,
    MANAGEMENT: _BY_CODE,
    # Errors of this surface have no codes on the wire, so their statuses lead to them.
    Surface.SPEECH: lambda status, _name: f"speech-{status}",
}


@lru_cache(maxsize=len(DOCUMENTS))
def operations_of(name: str) -> list[Operation]:
    """Every operation of the document ``name``."""
    beside = Beside(_EXAMPLES[name](), by_operation(), _ANCHORS[name])
    return operations(DOCUMENTS[name](), beside)
