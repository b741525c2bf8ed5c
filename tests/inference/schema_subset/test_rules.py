"""Each rule of the subset, and its violation."""

from __future__ import annotations

from typing import Any

import pytest

from inference import schema_subset
from inference.schema_subset import violations
from tests.support.cases.schemas import OBJECT, STRING, an_object, found, in_property, nested_arrays

REFUSED = sorted(word for group in schema_subset.REFUSED.values() for word in group)


@pytest.mark.parametrize("keyword", REFUSED)
@pytest.mark.parametrize("content", [1, {"minimum": 1}, [{"allOf": []}], None])
def test_a_listed_keyword_is_refused_and_its_content_is_not_inspected(
    keyword: str, content: Any
) -> None:
    schema = an_object(a={"type": "string", keyword: content})
    assert found(schema) == [("unsupported_keyword", f"/properties/a/{keyword}")]
    assert f"keyword '{keyword}' is refused by the subset." in violations(schema)[0].message


@pytest.mark.parametrize("keyword", ["x-order", "definitions", "nullable", "Type", "", "$anchor"])
def test_an_unlisted_keyword_is_refused_as_not_known(keyword: str) -> None:
    schema = OBJECT | {keyword: {"allOf": []}}
    assert found(schema) == [("unsupported_keyword", f"/{keyword}")]
    assert f"keyword '{keyword}' is not known to the subset." in violations(schema)[0].message


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "array", "items": STRING},
        OBJECT | {"type": ["object"]},
        OBJECT | {"type": ["object", "null"]},
        {"anyOf": [OBJECT, OBJECT]},
        {"$ref": "#/$defs/a", "$defs": {"a": OBJECT}},
        {"enum": [{}]},
        {"const": {}},
    ],
)
def test_the_root_must_be_an_object_schema(schema: Any) -> None:
    assert found(schema) == [("root_not_object", "")]


@pytest.mark.parametrize("schema", [{}, True, False, None, 5, "object", [], [OBJECT]])
def test_a_root_that_is_no_schema_breaks_both_rules(schema: Any) -> None:
    assert found(schema) == [("root_not_object", ""), ("malformed_schema", "")]


def test_a_property_that_is_not_required_is_named() -> None:
    schema = {**OBJECT, "properties": {"a": STRING, "b": STRING}, "required": ["a"]}
    assert found(schema) == [("optional_property", "/properties/b")]
    assert found({**OBJECT, "properties": {"a": STRING}}) == [
        ("optional_property", "/properties/a")
    ]
    assert "union with null" in violations(schema)[0].message


@pytest.mark.parametrize("value", [True, None, {}, STRING, "false", 0])
def test_additional_properties_must_be_false(value: Any) -> None:
    pointer = "/properties/a/additionalProperties"
    assert in_property(OBJECT | {"additionalProperties": value}) == [
        ("additional_properties", pointer)
    ]


@pytest.mark.parametrize("kind", ["object", ["object", "null"], ["null", "object"]])
def test_additional_properties_must_be_set_on_every_object(kind: Any) -> None:
    assert in_property({"type": kind}) == [("additional_properties", "/properties/a")]


def nested_objects(levels: int) -> dict[str, Any]:
    schema = STRING
    for _ in range(levels):
        schema = an_object(a=schema)
    return schema


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (nested_objects(5), []),
        (nested_objects(6), ["/properties/a" * 5]),
        (nested_objects(9), ["/properties/a" * 5]),
        (an_object(a=nested_arrays(4)), []),
        (an_object(a=nested_arrays(5)), ["/properties/a" + "/items" * 4]),
        (an_object(a=nested_objects(5), b=nested_objects(4)), ["/properties/a" * 5]),
        (
            an_object(b=nested_objects(5), a=nested_objects(5)),
            ["/properties/b" + "/properties/a" * 4, "/properties/a" * 5],
        ),
    ],
)
def test_objects_and_arrays_nest_at_most_five_deep(schema: Any, expected: list[str]) -> None:
    assert found(schema) == [("depth_limit", pointer) for pointer in expected]


def test_a_union_and_a_reference_are_no_level_of_their_own() -> None:
    schema: dict[str, Any] = STRING
    for _ in range(5):
        schema = an_object(a={"anyOf": [{"anyOf": [schema]}, {"type": "null"}]})
    assert found(schema) == []
    assert found(an_object(a={"anyOf": [schema]})) == [
        ("depth_limit", "/properties/a/anyOf/0" + "/properties/a/anyOf/0/anyOf/0" * 4)
    ]
    root = an_object(a={"$ref": "#/$defs/deep"})
    assert found(root | {"$defs": {"deep": nested_objects(5)}}) == []
    assert found(root | {"$defs": {"deep": nested_objects(6)}}) == [
        ("depth_limit", "/$defs/deep" + "/properties/a" * 5)
    ]


def test_a_type_outside_the_list_is_refused() -> None:
    assert in_property({"type": "date"}) == [("unsupported_type", "/properties/a/type")]
    assert in_property({"type": ["string", "any", "Null"]}) == [
        ("unsupported_type", "/properties/a/type/1"),
        ("unsupported_type", "/properties/a/type/2"),
    ]


@pytest.mark.parametrize(
    "ref",
    [
        "#", "", "#/$defs", "#/$defs/", "#/$defs/none", "#/$defs/d/properties", "$defs/d", "/$defs/d",
        "#/definitions/d", "#/properties/a", "http://a.example/s#/$defs/d", "d.json#/$defs/d",
        "#d", "#/$defs/%ff", "#/$defs/%4", "#/$defs/d~2", "#/$defs/d~", "%23/$defs/d", 5, None, {},
    ],
)  # fmt: skip
def test_a_reference_that_is_not_to_a_definition_of_the_root_is_refused(ref: Any) -> None:
    schema = an_object(a={"$ref": ref}) | {"$defs": {"d": OBJECT, "~2": STRING, "d~2": STRING}}
    assert found(schema) == [("unresolvable_ref", "/properties/a/$ref")]


def test_definitions_of_an_inner_schema_are_checked_and_cannot_be_referred_to() -> None:
    inner = an_object(b={"$ref": "#/$defs/d"}) | {"$defs": {"d": {"type": "string", "not": {}}}}
    assert in_property(inner) == [
        ("unresolvable_ref", "/properties/a/properties/b/$ref"),
        ("unsupported_keyword", "/properties/a/$defs/d/not"),
    ]


@pytest.mark.parametrize(
    ("name", "ref"),
    [
        ("a/b", "#/$defs/a~1b"),
        ("a~b", "#/$defs/a~0b"),
        ("~1", "#/$defs/~01"),
        ("Box[int]", "#/$defs/Box%5Bint%5D"),
        ("Box[int]", "#/$defs/Box[int]"),
        ("é", "#/$defs/%C3%A9"),
        ("d", "#/%24defs/d"),
        ("%", "#/$defs/%25"),
        ("", "#/$defs/"),
    ],
)
def test_escapes_in_a_reference_are_decoded(name: str, ref: str) -> None:
    assert found(an_object(a={"$ref": ref}) | {"$defs": {name: STRING}}) == []


@pytest.mark.parametrize(
    "defs",
    [
        {"a": {"$ref": "#/$defs/a"}},
        {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        {"a": {"anyOf": [{"type": "null"}, {"anyOf": [{"$ref": "#/$defs/a"}]}]}},
    ],
)
def test_a_circle_that_never_reaches_a_schema_is_unresolvable(defs: dict[str, Any]) -> None:
    schema = an_object(a={"$ref": "#/$defs/a"}) | {"$defs": defs}
    assert ("unresolvable_ref", "/properties/a/$ref") in found(schema)
    assert {code for code, _ in found(schema)} == {"unresolvable_ref"}


@pytest.mark.parametrize("keyword", ["type", "properties", "items", "enum", "const", "anyOf"])
def test_only_annotations_stand_beside_a_reference(keyword: str) -> None:
    schema = {"$ref": "#/$defs/d", keyword: {"type": "string", "enum": [1]}.get(keyword, [])}
    result = found(an_object(a=schema) | {"$defs": {"d": STRING}})
    assert ("malformed_schema", f"/properties/a/{keyword}") in result


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (True, ""),
        (False, ""),
        (None, ""),
        ("string", ""),
        ([], ""),
        ({}, ""),
        ({"description": "anything"}, ""),
        ({"type": None}, "/type"),
        ({"type": 5}, "/type"),
        ({"type": []}, "/type"),
        ({"type": ["string", 5]}, "/type"),
        ({"type": {}}, "/type"),
        ({"type": "array"}, ""),
        ({"type": ["null", "array"]}, ""),
        ({"type": "array", "items": True}, "/items"),
        ({"type": "array", "items": [STRING]}, "/items"),
        ({"type": "array", "items": {}}, "/items"),
        ({"type": "array", "items": None}, "/items"),
        ({**OBJECT, "properties": []}, "/properties"),
        ({**OBJECT, "required": "a"}, "/required"),
        ({**OBJECT, "required": None}, "/required"),
        ({**OBJECT, "required": [5]}, "/required/0"),
        ({**OBJECT, "required": ["ghost"]}, "/required/0"),
        ({"enum": []}, "/enum"),
        ({"enum": {}}, "/enum"),
        ({"anyOf": []}, "/anyOf"),
        ({"anyOf": {}}, "/anyOf"),
        ({"anyOf": [STRING, True]}, "/anyOf/1"),
        (OBJECT | {"$defs": []}, "/$defs"),
        (OBJECT | {"$defs": {"d": 5}}, "/$defs/d"),
    ],
)
def test_what_is_not_structurally_a_schema_is_malformed(schema: Any, pointer: str) -> None:
    assert in_property(schema) == [("malformed_schema", f"/properties/a{pointer}")]


@pytest.mark.parametrize("keyword", sorted(schema_subset.REFUSED["composition"]))
def test_a_schema_of_only_a_refused_composition_has_only_that_violation(keyword: str) -> None:
    schema = {keyword: [STRING, {"type": "null"}], "description": "either", "discriminator": {}}
    pointer = "/properties/a"
    assert in_property(schema) == [
        ("unsupported_keyword", f"{pointer}/{keyword}"),
        ("unsupported_keyword", f"{pointer}/discriminator"),
    ]


@pytest.mark.parametrize("keyword", ["format", "minLength", "maximum", "x-odd"])
def test_a_schema_without_a_type_reports_its_refused_keyword_first(keyword: str) -> None:
    assert in_property({keyword: 1}) == [
        ("unsupported_keyword", f"/properties/a/{keyword}"),
        ("malformed_schema", "/properties/a"),
    ]


def test_a_tuple_reports_prefix_items_and_not_items() -> None:
    schema = an_object(a={"type": "array", "prefixItems": [STRING, STRING]})
    assert found(schema) == [("unsupported_keyword", "/properties/a/prefixItems")]
    assert violations(schema)[0].message.endswith(
        "Use 'items', with 'anyOf' in it for mixed elements."
    )


def test_a_root_of_only_a_union_first_reports_that_it_must_be_an_object() -> None:
    assert found({"oneOf": [OBJECT, OBJECT]}) == [
        ("root_not_object", ""),
        ("unsupported_keyword", "/oneOf"),
    ]


def doubling(steps: int) -> dict[str, Any]:
    """Make a schema of ``steps`` definitions, each with the next one twice."""
    twice = [
        an_object(a={"$ref": f"#/$defs/d{step + 1}"}, b={"$ref": f"#/$defs/d{step + 1}"})
        for step in range(steps)
    ]
    defs: dict[str, Any] = {f"d{step}": schema for step, schema in enumerate(twice)}
    return an_object(a={"$ref": "#/$defs/d0"}) | {"$defs": defs | {f"d{steps}": STRING}}


def test_the_expansion_of_references_is_bounded() -> None:
    """n steps come to 2 + 2^n strings and 2^(n+1) - 2 references with as many objects."""
    assert found(doubling(14)) == []
    assert found(doubling(15)) == [("depth_limit", "")]
    assert found(doubling(5_000)) == [("depth_limit", "")]
    assert "with each reference replaced" in violations(doubling(15))[0].message


def test_definitions_that_are_not_referred_to_do_not_count() -> None:
    unused = doubling(30)
    assert found(unused | {"properties": {}, "required": []}) == []


def test_a_circle_of_definitions_is_expanded_once() -> None:
    tree = an_object(left={"$ref": "#/$defs/tree"}, right={"$ref": "#/$defs/tree"})
    assert found(an_object(a={"$ref": "#/$defs/tree"}) | {"$defs": {"tree": tree}}) == []
    grown = doubling(40)
    grown["$defs"]["d40"] = an_object(a={"$ref": "#/$defs/d0"})
    assert found(grown) == [("depth_limit", "")]
