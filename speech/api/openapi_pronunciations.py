"""The operations on pronunciations in the speech surface's OpenAPI document."""

from __future__ import annotations

from typing import Final

from core import errors
from core.api.openapi import STRING, Json, Schemas, answer, body, content, failures, path_parameter
from speech.api.openapi_errors import EVERYWHERE, HEADERS, KEY, error_schema
from speech.api.openapi_messages import object_schema
from speech.errors import PronunciationNotFound, TooManyPronunciations
from speech.models import LONGEST_WORD, Language
from speech.text.pronunciations import Alphabet
from speech.voices.pronunciations.wire import (
    PronunciationDeletion,
    PronunciationList,
    PronunciationObject,
)

SENT: Final = (PronunciationDeletion, PronunciationList, PronunciationObject)

_PUT_ERRORS: Final = (
    *EVERYWHERE,
    errors.InvalidField,
    errors.RequestTooLarge,
    TooManyPronunciations,
)


def paths(schemas: Schemas) -> Json:
    """The paths of pronunciations."""
    return {
        "/v1/pronunciations": {"get": _list(schemas), "post": _put(schemas)},
        "/v1/pronunciations/{pronunciation_id}": {"delete": _deletion(schemas)},
    }


def _list(schemas: Schemas) -> Json:
    return {
        "operationId": "listPronunciations",
        "summary": "How the account has words spoken",
        "security": KEY,
        "responses": {
            "200": answer("All, by word.", content(schemas.of[PronunciationList])),
            **failures(EVERYWHERE, error_schema, HEADERS),
        },
    }


def _put(schemas: Schemas) -> Json:
    text: Json = {**STRING, "maxLength": LONGEST_WORD, "pattern": "[\\p{L}\\p{N}]"}
    request = object_schema(
        {
            "word": {**text, "description": "A word, or several, as they are written."},
            "pronunciation": {**text, "description": "How it is spoken."},
        },
        {
            "alphabet": {
                "enum": [*(each.value for each in Alphabet), None],
                "description": "`ipa`: for embedded voices; those of speech servers read the word as it is written.",
            },
            "language": {
                "enum": [*(each.value for each in Language), None],
                "description": "Only for voices of this language.",
            },
            "case_sensitive": {
                "type": ["boolean", "null"],
                "description": "Only where capitals stand as in `word`.",
            },
        },
    )
    made = content(schemas.of[PronunciationObject])
    links: Json = {
        "delete": {
            "operationId": "deletePronunciation",
            "parameters": {"pronunciation_id": "$response.body#/id"},
        }
    }
    return {
        "operationId": "putPronunciation",
        "summary": "Say how a word is spoken",
        "security": KEY,
        "requestBody": body(request),
        "responses": {
            "200": answer("It replaced the one of the same word.", made),
            "201": {**answer("It is new.", made), "links": links},
            **failures(_PUT_ERRORS, error_schema, HEADERS),
        },
    }


def _deletion(schemas: Schemas) -> Json:
    return {
        "operationId": "deletePronunciation",
        "summary": "Delete a pronunciation",
        "security": KEY,
        "parameters": [path_parameter("pronunciation_id", "The id of one of the account's.")],
        "responses": {
            "200": answer("It is deleted.", content(schemas.of[PronunciationDeletion])),
            **failures((*EVERYWHERE, PronunciationNotFound), error_schema, HEADERS),
        },
    }
