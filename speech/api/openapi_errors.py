"""What every operation of the speech surface has in its OpenAPI document: the key, errors and headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core import errors
from core.api.openapi import BEARER, RETRY_AFTER, STRING, WWW_AUTHENTICATE, Json, header
from core.asgi.websocket import VERSION
from core.errors import ApiError
from speech.api.openapi_messages import object_schema
from speech.errors import error_type

KEY: Final[list[Json]] = [{BEARER: []}]
EVERYWHERE: Final = (errors.InvalidCredential, errors.InternalError)
_NO_RETRY: Final = header("`false` where trying again can not help.", always=False)
HEADERS: Final[dict[int, Json]] = {
    401: WWW_AUTHENTICATE,
    426: {
        "upgrade": header("The protocol to use.", {"const": "websocket"}),
        "sec-websocket-version": header("Its version.", {"const": str(VERSION)}),
    },
    409: {"x-should-retry": _NO_RETRY},
    429: {
        **RETRY_AFTER,
        "x-quota-reason": header(
            "Which limit it was.",
            {
                "enum": [
                    "requests_per_minute",
                    "refused_requests_per_minute",
                    "characters_per_day",
                    "clones_per_hour",
                ]
            },
        ),
        "retry-after-ms": header("Milliseconds to wait.", always=False),
        "x-should-retry": _NO_RETRY,
    },
    503: {"retry-after": header("Whole seconds to wait.", always=False)},
}


def error_schema(classes: Sequence[type[ApiError]]) -> Json:
    """The body of an error (speech contract, Error body)."""
    return _error({"enum": sorted({error_type(each) for each in classes})})


def _error(kind: Json) -> Json:
    return object_schema({"error": object_schema({"message": STRING, "type": kind})})
