"""Which schemas ``svc-json-schema-subset-v1`` accepts, and how it refuses the others."""

from __future__ import annotations

import enum
import json
import re
from typing import Any, Literal

import pytest
from django.conf import settings
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel, Field

from core.errors import UnsupportedJsonSchema, error_body
from inference import schema_subset
from inference.schema_subset import LISTED_CHARACTERS, LISTED_VIOLATIONS, Code, check
from tests.support.cases.schemas import OBJECT, STRING, an_object, found, in_property, nested_arrays

CONTRACT = """
| Accepted, structural | `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`, `const`, `anyOf`, `$defs`, `$ref` |
| Accepted, annotations (carried, never enforced) | `title`, `description`, `examples`, `default`, `$comment`, `$schema`, `$id` |
| Accepted types | `object`, `array`, `string`, `number`, `integer`, `boolean`, `null` |
| Refused, strings | `format`, `pattern`, `minLength`, `maxLength` |
| Refused, numbers | `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf` |
| Refused, objects | `patternProperties`, `propertyNames`, `minProperties`, `maxProperties`, `unevaluatedProperties`, `dependentRequired`, `dependentSchemas` |
| Refused, arrays | `prefixItems`, `contains`, `minContains`, `maxContains`, `minItems`, `maxItems`, `uniqueItems`, `unevaluatedItems` |
| Refused, composition | `allOf`, `oneOf`, `not`, `if`, `then`, `else` |
"""
"""The contract's table, copied."""

TABLE = {
    row[0].strip().split(" (")[0]: [word.strip(" `") for word in row[1].split(",")]
    for row in (line.strip("| ").split(" | ") for line in CONTRACT.strip().splitlines())
}
REFUSED = [word for group in TABLE if group.startswith("Refused") for word in TABLE[group]]


def refusal(schema: Any, name: str | None = "X") -> UnsupportedJsonSchema:
    with pytest.raises(UnsupportedJsonSchema) as caught:
        check(schema, name)
    return caught.value


def test_the_keyword_tables_are_the_contracts() -> None:
    assert schema_subset.SUBSET_ID == "svc-json-schema-subset-v1"
    assert list(schema_subset.STRUCTURAL) == TABLE["Accepted, structural"]
    assert list(schema_subset.ANNOTATIONS) == TABLE["Accepted, annotations"]
    assert list(schema_subset.TYPES) == TABLE["Accepted types"]
    assert {f"Refused, {group}": list(words) for group, words in schema_subset.REFUSED.items()} == {
        group: words for group, words in TABLE.items() if group.startswith("Refused")
    }
    assert schema_subset.MAX_DEPTH == 5


def test_the_documentation_shows_the_contracts_table_and_the_codes_answers() -> None:
    page = (settings.BASE_DIR / "docs/api/schema-subset.md").read_text()
    for row in CONTRACT.strip().splitlines():
        assert row.replace(" (carried, never enforced)", "") in page
    good, shown = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL))
    check(good, "person")
    schema = {
        **OBJECT,
        "properties": {"age": {"type": "integer", "minimum": 0}, "nick": STRING},
        "required": ["age"],
    }
    assert json.loads(error_body(refusal(schema, "person"))) == shown
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == {str(code) for code in Code}


GOOD_VALUES: dict[str, dict[str, Any]] = {
    "type": {"type": "string"},
    "properties": an_object(b=STRING),
    "required": OBJECT | {"required": []},
    "additionalProperties": OBJECT,
    "items": {"type": "array", "items": STRING},
    "enum": {"enum": ["a", 1, None, {"minimum": 1}]},
    "const": {"const": {"oneOf": []}},
    "anyOf": {"anyOf": [STRING, {"type": "null"}]},
    "$defs": an_object(b=STRING) | {"$defs": {"unused": STRING}},
    "$ref": {"$ref": "#/$defs/a"},
}


@pytest.mark.parametrize("keyword", TABLE["Accepted, structural"])
def test_a_structural_keyword_is_accepted(keyword: str) -> None:
    assert keyword in GOOD_VALUES[keyword]
    assert found(an_object(a=GOOD_VALUES[keyword]) | {"$defs": {"a": STRING}}) == []


@pytest.mark.parametrize("keyword", TABLE["Accepted, annotations"])
@pytest.mark.parametrize("content", ["text", None, {"minimum": 1}, [{"allOf": [True]}]])
def test_an_annotation_is_accepted_and_never_inspected(keyword: str, content: Any) -> None:
    assert in_property({"type": "string", keyword: content}) == []
    assert found(OBJECT | {keyword: content}) == []
    reference = {"$ref": "#/$defs/d", keyword: content}
    assert found(an_object(a=reference) | {"$defs": {"d": STRING}}) == []


@pytest.mark.parametrize("name", TABLE["Accepted types"])
def test_every_type_is_accepted_alone_and_in_a_union(name: str) -> None:
    rest = {"object": OBJECT, "array": {"items": STRING}}.get(name, {})
    assert in_property({**rest, "type": name}) == []
    assert in_property({**rest, "type": [name, "null"]}) == []


def test_properties_may_bear_the_names_of_keywords() -> None:
    assert found(an_object(**dict.fromkeys([*REFUSED, "type", "$ref"], STRING))) == []


def test_an_object_without_properties_is_an_empty_object() -> None:
    assert found({"type": "object", "additionalProperties": False}) == []


def test_recursion_through_a_property_or_an_item_is_accepted() -> None:
    node = an_object(next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})
    tree = an_object(children={"type": "array", "items": {"$ref": "#/$defs/tree"}})
    root = an_object(a={"$ref": "#/$defs/node"}, b={"$ref": "#/$defs/tree"})
    assert found(root | {"$defs": {"node": node, "tree": tree}}) == []


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    zip_code: str | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Person(BaseModel):
    """A person, as an application would ask for one."""

    name: str = Field(description="Full name", examples=["Ann"])
    age: int | None
    height: float
    favourite: Colour = Field(description="A reference with a sibling")
    address: Address
    others: list[Address] = Field(default_factory=list)
    pets: list[Cat | Dog]


class Category(BaseModel):
    title: str
    children: list[Category]


class Empty(BaseModel):
    pass


@pytest.mark.parametrize("model", [Person, Category, Address, Empty])
def test_the_strict_schemas_of_the_openai_sdk_pass(model: type[BaseModel]) -> None:
    assert found(to_strict_json_schema(model)) == []


def test_pointers_escape_tildes_and_slashes_and_nothing_else() -> None:
    schema = an_object(**{"a/b~c": {"type": "x"}, "": {"type": "x"}, 'é %"': {"type": "x"}})
    assert [pointer for _, pointer in found(schema)] == [
        "/properties/a~1b~0c/type",
        "/properties//type",
        '/properties/é %"/type',
    ]


def test_every_violation_is_listed_in_document_order() -> None:
    schema = {
        "minProperties": 1,
        "type": "object",
        "properties": {
            "a": {"type": "array", "maxItems": 3, "items": {"type": "date", "format": "date"}},
            "b": {"anyOf": [{"type": "object"}, {"$ref": "#/nowhere"}], "if": True},
        },
        "required": ["a", "c"],
        "x-last": None,
    }
    assert found(schema) == [
        ("additional_properties", ""),
        ("unsupported_keyword", "/minProperties"),
        ("unsupported_keyword", "/properties/a/maxItems"),
        ("unsupported_type", "/properties/a/items/type"),
        ("unsupported_keyword", "/properties/a/items/format"),
        ("optional_property", "/properties/b"),
        ("additional_properties", "/properties/b/anyOf/0"),
        ("unresolvable_ref", "/properties/b/anyOf/1/$ref"),
        ("unsupported_keyword", "/properties/b/if"),
        ("malformed_schema", "/required/1"),
        ("unsupported_keyword", "/x-last"),
    ]


def test_the_message_of_a_single_problem_at_the_root_of_a_nameless_schema() -> None:
    assert refusal({"type": "object"}, None).message == (
        "Invalid schema for response_format: at the root, every object must set "
        '"additionalProperties": false. Name its properties instead.'
    )


def test_a_document_of_any_depth_is_walked() -> None:
    assert found(an_object(a=nested_arrays(9_000))) == [
        ("depth_limit", "/properties/a" + "/items" * 4)
    ]


def test_a_refusal_is_bounded_however_many_rules_are_broken() -> None:
    schema = OBJECT | {f"x{number}": 1 for number in range(100_000)}
    error = refusal(schema)
    assert len(error.extra["violations"]) == LISTED_VIOLATIONS
    assert "(1 of more than 100 problems)" in error.message
    assert len(error_body(error)) < 100_000


def test_long_names_are_cut_in_messages_and_do_not_multiply() -> None:
    name = "n" * 200_000
    inner = an_object(**{f"p{number}": {"type": "x"} for number in range(20_000)})
    error = refusal(an_object(**{name: inner}), name)
    assert len(error.message) < 1000
    assert "(1 of more than 100 problems)" in error.message
    pointers = [violation["pointer"] for violation in error.extra["violations"]]
    assert pointers == [f"/properties/{name}/properties/p0/type"]
    assert len(pointers[0]) > LISTED_CHARACTERS


def test_the_values_of_an_enum_are_not_walked() -> None:
    assert in_property({"enum": [{"allOf": [number]} for number in range(100_000)]}) == []


def test_a_long_chain_of_references_is_resolved() -> None:
    defs: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(9_000)}
    schema = an_object(a={"$ref": "#/$defs/d0"})
    assert found(schema | {"$defs": defs | {"d9000": STRING}}) == []
    looped = found(schema | {"$defs": defs | {"d9000": {"$ref": "#/$defs/d0"}}})
    assert len(looped) == 9_002


@pytest.mark.parametrize("strict", [None, False, True])
def test_without_strict_the_message_says_that_the_subset_applies_anyway(
    strict: bool | None,
) -> None:
    with pytest.raises(UnsupportedJsonSchema) as caught:
        check({"type": "object"}, "X", strict=strict)
    told = caught.value.message.endswith(" These rules apply with and without 'strict'.")
    assert told is (strict is not True)
