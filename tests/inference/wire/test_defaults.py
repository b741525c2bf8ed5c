"""Defaults of a model: which there may be, and which requests get them."""

from __future__ import annotations

from typing import Any

import pytest

from inference.wire.defaults import problem, with_defaults

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a field of the request alone": ({"seed": 7}, "Leave seed out; a default may be temperature"),
    "messages": ({"messages": []}, "Leave messages out"),
    "an unknown field": ({"top_k": 40}, "Leave top_k out"),
    "the older name of the cap": ({"max_tokens": 5}, "give max_completion_tokens"),
    "null": ({"temperature": None}, "Leave temperature out instead of giving null."),
    "a value out of range": ({"temperature": 3}, "'temperature' must be a number between 0 and 2"),
    "another type": ({"top_p": "0.9"}, "'top_p' must be a number between 0 and 1"),
    "no cap": ({"max_completion_tokens": 0}, "'max_completion_tokens' must be"),
    "too many stops": ({"stop": list("abcde")}, "'stop' must be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_default_is_held_to_the_rules_of_a_callers_value(name: str) -> None:
    defaults, words = REFUSED[name]
    found = problem(defaults)
    assert found is not None
    assert words in found


DEFAULTS: dict[str, Any] = {
    "temperature": 0.6,
    "top_p": 0.95,
    "stop": ["END"],
    "max_completion_tokens": 100,
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing given": ({}, DEFAULTS),
    "a value wins, also zero": ({"temperature": 0}, {**DEFAULTS, "temperature": 0}),
    "null is left out": ({"temperature": None, "top_p": None}, DEFAULTS),
    "no stop at all": ({"stop": []}, {**DEFAULTS, "stop": []}),
    "a cap under the same name": (
        {"max_completion_tokens": 5},
        {**DEFAULTS, "max_completion_tokens": 5},
    ),
    "a cap under the older name": (
        {"max_tokens": 5},
        {"temperature": 0.6, "top_p": 0.95, "stop": ["END"], "max_tokens": 5},
    ),
    "a null cap under the older name": ({"max_tokens": None}, {**DEFAULTS, "max_tokens": None}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_request_leaves_out_is_filled_in(name: str) -> None:
    given, asked = CASES[name]
    assert problem(DEFAULTS) is None
    assert with_defaults(given, DEFAULTS) == asked
