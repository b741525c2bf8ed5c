"""Tables that are sorted by a parameter."""

from __future__ import annotations

import pytest

from usage.console.sorting import Head, Order

ORDER = Order[tuple[str, int]](
    {"name": lambda line: line[0], "requests": lambda line: line[1]}, default="-requests"
)
LINES = [("a", 2), ("b", 1), ("c", 2)]


@pytest.mark.parametrize(
    ("asked", "names", "requests"),
    [
        (None, "acb", Head("descending", "?requests")),
        ("requests", "bac", Head("ascending", "?-requests")),
        ("name", "abc", Head("none", "?-requests")),
        ("-name", "cba", Head("none", "?-requests")),
        ("-nothing", "acb", Head("descending", "?requests")),
    ],
)
def test_lines_are_sorted_and_a_head_leads_to_the_other_direction(
    asked: str | None, names: str, requests: Head
) -> None:
    assert "".join(name for name, _ in ORDER.sort(LINES, asked)) == names
    assert ORDER.heads(asked, "?{}".format)["requests"] == requests
