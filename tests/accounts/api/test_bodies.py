"""How the management API reads a body: which member is there twice, and what looking for one costs."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest

from accounts.api.management import JsonObject
from core.errors import InvalidField


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"plan": 1, "plan": 2}', "plan"),
        ('{"x": {"plan": 1, "plan": 2}}', "x.plan"),
        ('{"x": [1, {"y": [{"z": 1, "z": 2}]}, {"w": 1, "w": 2}]}', "x[1].y[0].z"),
        ('{"' + 300 * "n" + '": {"z": 1, "z": 2}}', 200 * "n"),
    ],
)
def test_the_first_member_that_is_there_twice_is_named(body: str, place: str) -> None:
    with pytest.raises(InvalidField, match="is there twice") as refused:
        JsonObject().parse(io.BytesIO(body.encode()))

    assert refused.value.param == place


def test_a_long_name_with_many_members_takes_no_memory_for_each() -> None:
    """Their places together would be 2000 times the body."""
    body = json.dumps({"n" * 32_000: {str(number): [] for number in range(4_000)}}).encode()
    assert len(body) < 80 * 1024

    tracemalloc.start()
    try:
        JsonObject().parse(io.BytesIO(body))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 16 * 1024 * 1024
