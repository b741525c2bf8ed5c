"""The oracle itself: it detects every change of a book."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from core.ids import request_id
from tests.support.faults import oracle
from tests.support.faults.case import Case, publish_single
from tests.support.faults.seen import Seen, new_marker
from tests.support.live import Gateway, marker_of
from usage.models import UsageRow

Books = tuple[list[Seen], list[dict[str, Any]]]


def with_seen(books: Books, **changes: Any) -> Books:
    seen, log = books
    return [replace(seen[0], **changes), *seen[1:]], log


def with_log(books: Books, **changes: Any) -> Books:
    seen, log = books
    return seen, [{**log[0], **changes}, *log[1:]]


LIES: dict[str, Callable[[Books], Books]] = {
    "an answer without a row": lambda books: with_seen(books, request_id=request_id()),
    "a request nobody sent": lambda books: (books[0][1:], books[1]),
    "one id for two": lambda books: ([*books[0], books[0][0]], books[1]),
    "a failure recorded as success": lambda books: with_seen(
        books, status=500, code="backend_error", complete=False, usage=None
    ),
    "another usage": lambda books: with_seen(
        books, usage={"prompt_tokens": 1, "completion_tokens": 1}
    ),
    "less produced than billed": lambda books: with_log(books, produced_tokens=1),
    "more produced than billed": lambda books: with_log(books, produced_tokens=9),
    "a shorter prompt than billed": lambda books: with_log(books, prompt_tokens=1),
    "a run that nobody wrote down": lambda books: (
        [*books[0], Seen(lost := new_marker(), streamed=True)],
        [*books[1], {**books[1][0], "body": {"messages": [{"content": f"{lost}. hi"}]}}],
    ),
}


@pytest.fixture
def case(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(oracle, "SECONDS", 0.0)
    model = publish_single(gateway, gateway.simulator.base_url, running=True)
    case = Case(gateway, model, [gateway.simulator.requests])
    assert case.ask(streamed=True).complete
    assert case.ask(streamed=False).complete
    return case


def read(case: Case) -> Books:
    markers: Sequence[str] = [each.marker for each in case.seen]
    log = [entry for entry in case.gateway.simulator.requests() if marker_of(entry) in markers]
    return case.seen, sorted(log, key=lambda entry: not entry["stream"])


def test_books_that_do_not_agree_are_found_out(case: Case) -> None:
    books = read(case)
    believed = []
    for lie, told in LIES.items():
        seen, log = told(books)
        with suppress(AssertionError):
            oracle.assert_books_agree(case.gateway, seen, partial(list, log))
            believed.append(lie)

    assert believed == []


def test_a_row_that_the_rollups_do_not_have_is_found_out(case: Case) -> None:
    row = case.gateway.rows()[0]
    row.request_id = request_id()
    row.save(force_insert=True)
    seen, log = read(case)
    written = replace(seen[0], request_id=row.request_id, marker=new_marker())
    entry = {**log[0], "body": {"messages": [{"content": f"{written.marker}. hi"}]}}

    assert UsageRow.objects.filter(organization_id=case.gateway.organization.pk).count() == 3
    with pytest.raises(AssertionError):
        oracle.assert_books_agree(case.gateway, [*seen, written], lambda: [*log, entry])
