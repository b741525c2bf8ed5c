"""The tables of the schema subset, and the words about what is outside of it."""

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


ROOT_NOT_OBJECT = (
    'the root must be an object schema. Give it "type": "object" itself, without \'$ref\' and '
    "without a union, and put other answers into a property."
)
NOT_A_SCHEMA = "a schema must be a JSON object; true and false are not. Give it a 'type'."
NO_TYPE = "the schema does not say what the value is. Give it a 'type', 'anyOf', 'enum', 'const' or '$ref'."
NO_ITEMS = "the array has no 'items'. Add the schema of its elements."
TOO_LARGE = (
    f"with each reference replaced by its definition, the schema has more than {MAX_EXPANDED} "
    "schemas. Let fewer definitions refer to one another."
)
TOO_MANY = (
    f"the schema has more than {MAX_SCHEMAS} schemas in it, too many to check. "
    "Ask for a smaller answer, or for several."
)
TOO_DEEP = f"objects and arrays nest deeper than {MAX_DEPTH} levels. Flatten the schema."
OPEN_OBJECT = 'every object must set "additionalProperties": false. Name its properties instead.'
BAD_ITEMS = "'items' must be one schema for all elements. For mixed elements use 'anyOf' in it."
BAD_ENUM = "'enum' must be an array of at least one value."
BAD_TYPE = "'type' must be a string or an array of at least one string."
BAD_REQUIRED = "'required' must be an array of property names."
BAD_ANY_OF = "'anyOf' must be an array of at least one schema."
FOREIGN_REF = "'$ref' must have the form '#/$defs/<name>'. Copy the schema into the root's '$defs'."
ENDLESS_REF = (
    "the reference leads in a circle of '$ref' and 'anyOf' that never reaches a property or an "
    "item. Break the circle."
)

_STATE_IT = "Remove it; state the rule in 'description' and check the answer on your side."
_CORRECTIONS = {
    "allOf": "Merge its schemas into one.",
    "oneOf": "Use 'anyOf'.",
    "prefixItems": "Use 'items', with 'anyOf' in it for mixed elements.",
}


def keyword(name: str) -> str:
    """Say whether the subset refuses the keyword or does not know it."""
    if name not in GROUP_OF:
        return f"keyword '{shown(name)}' is not known to the subset. Remove it."
    correction = _CORRECTIONS.get(name, _STATE_IT)
    return f"keyword '{name}' is refused by the subset. {correction}"


def bad_map(name: str) -> str:
    return f"'{name}' must be an object of names to schemas."


def beside_ref(name: str) -> str:
    return f"'{name}' cannot stand beside '$ref'. Move it into the definition."


def optional(name: str) -> str:
    return (
        f"property '{shown(name)}' must be listed in 'required'. To make it optional, list it and "
        "let its type be a union with null."
    )


def not_a_property(name: str) -> str:
    return f"'{shown(name)}' is required but is not in 'properties'. Add it there or remove it."


def unsupported_type(name: str) -> str:
    return f"type '{shown(name)}' is not in the subset. Use one of {', '.join(TYPES)}."


def no_such_def(name: str) -> str:
    return f"there is no '{shown(name)}' in the root's '$defs'. Define it there."


def shown(text: str, characters: int = 64) -> str:
    """Shorten ``text`` to ``characters`` for a message."""
    return text if len(text) <= characters else text[: characters - 3] + "..."
