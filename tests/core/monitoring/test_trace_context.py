"""Which trace contexts of clients are passed on (https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

import pytest

from core.monitoring.trace_context import read

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def given(*fields: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in fields]


@pytest.mark.parametrize(
    "parent",
    [PARENT, f"cc-{TRACE}-b7ad6b7169203331-01-what-the-future-adds", f"01-{TRACE}-{'1' * 16}-ff"],
)
def test_a_valid_parent_is_passed_on_unchanged(parent: str) -> None:
    found = read(given(("host", "a"), ("traceparent", parent)))

    assert found is not None
    assert found.trace_id == TRACE
    assert found.lines == f"traceparent: {parent}\r\n".encode()


@pytest.mark.parametrize(
    "parent",
    [
        "",
        PARENT.upper(),
        PARENT[:-1],
        PARENT + "-more",
        "ff" + PARENT[2:],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00_{TRACE}-b7ad6b7169203331-01",
        f"cc-{TRACE}-b7ad6b7169203331-01.more",
        f"cc-{TRACE}-b7ad6b7169203331-01-" + "a" * 201,
        f"cc-{TRACE}-b7ad6b7169203331-01-a\x00b",
        f"cc-{TRACE}-b7ad6b7169203331-01-\xe9",
    ],
)
def test_an_invalid_parent_is_dropped_with_its_state(parent: str) -> None:
    assert read(given(("traceparent", parent), ("tracestate", "a=1"))) is None


def test_two_parents_are_none() -> None:
    assert read(given(("traceparent", PARENT), ("traceparent", PARENT))) is None


def test_no_parent_is_none() -> None:
    assert read(given(("tracestate", "a=1"))) is None


@pytest.mark.parametrize(
    ("states", "kept"),
    [
        (["congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"], "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"),
        (["a=1", "b@c=2"], "a=1,b@c=2"),
        (["a=1,, b=2"], "a=1,, b=2"),
        (["a"], ""),
        (["A=1"], ""),
        (["a=1,a=2"], ""),
        (["a=1,b=\xe9"], ""),
        (["a=" + "x" * 257], ""),
        ([",".join(f"k{number}=1" for number in range(33))], ""),
        (["a=1\x00"], ""),
        ([""], ""),
    ],
)
def test_a_state_is_passed_on_unchanged_or_not_at_all(states: list[str], kept: str) -> None:
    found = read(given(("traceparent", PARENT), *(("tracestate", each) for each in states)))

    assert found is not None
    assert found.state == kept
    assert (b"tracestate" in found.lines) is bool(kept)
