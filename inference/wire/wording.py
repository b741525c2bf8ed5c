"""The messages to callers whose fields fail validation.

msgspec's own messages name Python types and can repeat values, so they are never sent: only the
path, the fact that a member is missing and the JSON type that was sent are read from them. The
rest comes from ``EXPECTED``, one line per modelled field.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from core.errors import InvalidField

_TEXT = "a string"
_TRUTH = "true or false"
_POSITIVE = "a positive integer of at most 64 bits"
_PENALTY = "a number between -2 and 2"
_FUNCTION_NAME = "1 to 64 of the characters A-Z, a-z, 0-9, '_', '-' and '.'"

EXPECTED = MappingProxyType(
    {
        "model": "a non-empty string: an identifier from GET /v1/models",
        "messages": "an array of at least one message",
        "messages[]": "an object with a 'role'",
        "messages[].role": "'system', 'developer', 'user', 'assistant' or 'tool'",
        "messages[].content": "a string or an array of content parts",
        "messages[].content[]": 'a content part, such as {"type": "text", "text": "..."}',
        "messages[].content[].type": "a string such as 'text'",
        "messages[].content[].text": _TEXT,
        "messages[].name": _TEXT,
        "messages[].refusal": _TEXT,
        "messages[].reasoning_content": _TEXT,
        "messages[].tool_calls": "an array of tool calls",
        "messages[].tool_calls[]": "an object with 'id', 'type' and 'function'",
        "messages[].tool_calls[].id": _TEXT,
        "messages[].tool_calls[].type": "'function'",
        "messages[].tool_calls[].function": "an object with 'name' and 'arguments'",
        "messages[].tool_calls[].function.name": _TEXT,
        "messages[].tool_calls[].function.arguments": "a string that holds JSON, not the object itself",
        "messages[].tool_call_id": "a string: the 'id' of the tool call that is answered",
        "stream": _TRUTH,
        "stream_options": 'an object such as {"include_usage": true}',
        "stream_options.include_usage": _TRUTH,
        "max_completion_tokens": _POSITIVE,
        "max_tokens": _POSITIVE,
        "temperature": "a number between 0 and 2",
        "top_p": "a number between 0 and 1",
        "frequency_penalty": _PENALTY,
        "presence_penalty": _PENALTY,
        "stop": "a string or an array of up to 4 strings",
        "stop[]": _TEXT,
        "seed": "an integer of at most 64 bits",
        "logit_bias": "an object of token ids (digits in a string) to numbers",
        "logprobs": _TRUTH,
        "top_logprobs": "an integer between 0 and 20",
        "tools": "an array of function tools",
        "tools[]": "an object with 'type' and 'function'",
        "tools[].type": "'function'",
        "tools[].function": "an object with a 'name'",
        "tools[].function.name": _FUNCTION_NAME,
        "tools[].function.description": _TEXT,
        "tools[].function.parameters": "an object: the JSON Schema of the arguments",
        "tools[].function.strict": _TRUTH,
        "tool_choice": "'auto', 'none', 'required' or an object that names a function",
        "tool_choice.type": "'function'",
        "tool_choice.function": "an object with a 'name'",
        "tool_choice.function.name": "the name of one of the 'tools'",
        "parallel_tool_calls": _TRUTH,
        "response_format": 'an object such as {"type": "json_object"}',
        "response_format.type": "'text', 'json_object' or 'json_schema'",
        "response_format.json_schema": "an object with 'name' and 'schema'",
        "response_format.json_schema.name": "a non-empty string",
        "response_format.json_schema.schema": "an object: the JSON Schema of the answer",
        "response_format.json_schema.description": _TEXT,
        "response_format.json_schema.strict": _TRUTH,
        "n": "1: one choice is made per request",
        "user": _TEXT,
        "safety_identifier": _TEXT,
        "prompt_cache_key": _TEXT,
        "service_tier": _TEXT,
        "store": _TRUTH,
        "metadata": "an object whose values are all strings",
    }
)
"""Path of a field (``[]`` for any index) to a description of its valid values."""

_REQUIRED = frozenset({"model", "messages"})
_JSON_TYPES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number with a fraction",
    "bool": "a boolean",
    "null": "null",
    "NoneType": "null",
    "array": "an array",
    "list": "an array",
    "object": "an object",
    "dict": "an object",
}
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_GOT = re.compile(r"Expected `.*?`, got `(\w+)`")
_PATH = re.compile(r"`\$\.?([^`]*)`\Z")
_INDEX = re.compile(r"\[\d+\]")


def missing(path: str) -> InvalidField:
    """Build the error for a missing member at ``path``."""
    return InvalidField(f"'{path}' is required. It must be {_expected(path)}.", param=path)


def wrong(path: str, got: str | None = None) -> InvalidField:
    """Build the error for an invalid value at ``path``.

    ``got``: the type that was sent, in Python's or msgspec's name; leave it out when the type is
    right and the value is not.
    """
    sent = f" {_JSON_TYPES[got].capitalize()} was sent." if got in _JSON_TYPES else ""
    advice = " Correct it." if _is_required(path) else " Correct it or leave it out."
    return InvalidField(f"'{path}' must be {_expected(path)}.{sent}{advice}", param=path)


def refused(path: str, why: str) -> InvalidField:
    """Build an error; ``why`` continues a sentence that begins with the field, and says what to do."""
    return InvalidField(f"'{path}' {why}", param=path)


def translated(said: str) -> InvalidField:
    """Translate the message of a ``msgspec.ValidationError`` into an API error.

    The path is searched at the end of the message: a refused value before it may contain anything,
    even a path.
    """
    found = _PATH.search(said)
    path, inside, _ = found[1].partition("[...]") if found else ("", "", "")
    absent = _MISSING.match(said)
    if absent:
        return missing(f"{path}.{absent[1]}" if path else absent[1])
    got = _GOT.match(said)
    # The type of one key or value inside an object is not the type of the object.
    return wrong(path, got[1] if got and not inside else None)


def _expected(path: str) -> str:
    return EXPECTED[_INDEX.sub("[]", path)]


def _is_required(path: str) -> bool:
    """Whether leaving the field out would not help: true inside messages, tools and the like."""
    return path in _REQUIRED or "[" in path or "." in path
