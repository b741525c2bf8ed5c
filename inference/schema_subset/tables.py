"""The keyword tables of ``svc-json-schema-subset-v1``.

Contract: inference, "Structured-output schema subset", first table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SUBSET_ID = "svc-json-schema-subset-v1"
MAX_DEPTH = 5
"""Levels of objects and arrays; the root is the first."""
MAX_SCHEMAS = 10_000
"""Schemas in a document before expansion. Twice OpenAI's limit on properties; it bounds the time
of a check."""
MAX_EXPANDED = 100_000
"""Schemas in a document after its references are replaced by their definitions."""

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
STRUCTURAL = (
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$defs",
    "$ref",
)
ANNOTATIONS = ("title", "description", "examples", "default", "$comment", "$schema", "$id")
REFUSED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "strings": ("format", "pattern", "minLength", "maxLength"),
        "numbers": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        "objects": (
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "unevaluatedProperties",
            "dependentRequired",
            "dependentSchemas",
        ),
        "arrays": (
            "prefixItems",
            "contains",
            "minContains",
            "maxContains",
            "minItems",
            "maxItems",
            "uniqueItems",
            "unevaluatedItems",
        ),
        "composition": ("allOf", "oneOf", "not", "if", "then", "else"),
    }
)
GROUP_OF: Mapping[str, str] = MappingProxyType(
    {keyword: group for group, keywords in REFUSED.items() for keyword in keywords}
)
"""Refused keyword to its group."""
