"""The oracle of all faults: six books that must agree afterwards.

The clients' answers = the model server's log = the ledger = the JSON export = the CSV export =
the summary. docs/develop/testing.md gives the reason of each check.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import httpx2

from accounts.models import Scope
from tests.support.builders import traffic
from tests.support.builders.export_rows import expected, expected_csv
from tests.support.faults.seen import Seen, ask
from tests.support.live import Gateway, fetch, marker_of
from usage.models import UsageRow
from usage.receipts import Receipt

Entries = Sequence[Mapping[str, Any]]
"""A model server's log, as ``GET /sim/requests`` of the simulator returns it."""

NEVER_ADMITTED = frozenset({"rate_limit_exceeded"})
ADMITTED_IF_ASKED = frozenset({"server_overloaded", "server_shutting_down"})
"""Codes of a 503 that occur both before admission and after a model server got the request."""
TOKEN_LIMIT = 100_000
"""The organization's limit in these tests; see ``assert_limits_came_back``."""
SECONDS = 60.0


def assert_books_agree(
    gateway: Gateway,
    seen: Sequence[Seen],
    read_log: Callable[[], Entries],
    count: int | None = None,
) -> list[UsageRow]:
    """Compare all records of the organization's requests; return its rows.

    ``seen`` must have every request that the organization sent; ``count``: the expected number of
    rows, where clients without an answer leave it open. Rows may come late (a disconnected client
    does not wait for its row, a killed gateway's row is written by the next one), so the books
    have ``SECONDS`` to agree; a superfluous row never goes away.
    """
    deadline = time.monotonic() + SECONDS
    key = gateway.mint(Scope.READ)
    while True:
        try:
            rows = gateway.rows()
            assert count in (None, len(rows)), f"{len(rows)} rows instead of {count}"
            entries = _entries_by_marker(seen, read_log())
            _assert_rows_are_those_of_the_requests(rows, seen, entries)
            _assert_exports_agree(gateway, key, rows)
            _assert_summary_agrees(gateway, key, rows)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return rows


def _entries_by_marker(seen: Sequence[Seen], log: Entries) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {each.marker: [] for each in seen}
    for entry in log:
        if (marker := marker_of(entry)) in found:
            found[marker].append(entry)
    return found


def _was_admitted(each: Seen, entries: Entries) -> bool:
    """Whether an answer shows that its request was admitted."""
    if each.status == 503 and each.code in ADMITTED_IF_ASKED:
        return bool(entries)
    return each.status == 200 or each.code not in NEVER_ADMITTED


def _assert_rows_are_those_of_the_requests(
    rows: Sequence[UsageRow],
    seen: Sequence[Seen],
    entries: Mapping[str, Entries],
) -> None:
    by_id = {row.request_id: row for row in rows}
    assert len(by_id) == len(rows), "a request has two rows"
    answered = [each for each in seen if each.request_id is not None]
    assert len({each.request_id for each in answered}) == len(answered), "an id was used twice"
    admitted = {each.request_id for each in answered if _was_admitted(each, entries[each.marker])}
    assert admitted <= set(by_id), f"no row for {admitted - set(by_id)}"
    refused = {each.request_id for each in answered} - admitted
    assert not refused & set(by_id), "a request that was not admitted has a row"
    # Clients without an answer do not know the id; their requests that ran must have a row.
    unknown = [each for each in seen if each.request_id is None]
    unclaimed = len(by_id) - len(admitted)
    ran = sum(bool(entries[each.marker]) for each in unknown)
    assert ran <= unclaimed <= len(unknown), f"{unclaimed} rows for {ran} that ran unseen"
    for each in answered:
        if each.request_id in by_id:
            assert_row_tells_what_was_seen(by_id[each.request_id], each, entries[each.marker])


def assert_row_tells_what_was_seen(row: UsageRow, each: Seen, entries: Entries) -> None:
    """Compare a row with its client's answer and the model server's log."""
    assert row.streamed is each.streamed
    if each.complete:
        assert (row.outcome, row.http_status, row.error_code) == ("success", 200, None)
        assert each.usage is not None
        assert row.generated_output_tokens == row.delivered_output_tokens
        assert each.usage["completion_tokens"] == row.generated_output_tokens
        assert row.backend_reported_input_tokens in (0, each.usage["prompt_tokens"])
    elif each.code is not None:
        assert (row.http_status, row.error_code) == (each.status, each.code)
        assert row.outcome != "success"
    else:
        assert row.outcome in ("success", "client_disconnected", "interrupted")
    assert row.delivered_output_tokens <= row.generated_output_tokens
    if row.outcome != "interrupted":
        assert each.pieces <= row.delivered_output_tokens, "read, but not delivered"
    prompt = max((entry["prompt_tokens"] for entry in entries), default=0)
    produced = max((entry["produced_tokens"] for entry in entries), default=0)
    assert row.backend_reported_input_tokens <= prompt
    assert row.backend_reported_output_tokens <= produced
    assert row.generated_output_tokens <= produced
    if each.complete:
        assert row.generated_output_tokens == produced
        assert row.backend_reported_output_tokens in (0, produced)


def _read(gateway: Gateway, key: str, path: str, **query: str) -> httpx2.Response:
    answer = fetch(f"{gateway.base_url}/{path}", key=key, params=query)
    assert answer.status_code == 200, answer.text
    return answer


def _assert_exports_agree(gateway: Gateway, key: str, rows: Sequence[UsageRow]) -> None:
    exported = _read(gateway, key, "usage/export", limit="10000").json()["rows"]
    assert exported == [expected(row) for row in rows]
    text = _read(gateway, key, "usage/export", format="csv").text
    lines = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    assert lines == [expected_csv(row) for row in rows]
    for row, said in zip(rows, exported, strict=True):
        input_cost = row.backend_reported_input_tokens * Fraction(row.input_price_per_mtok)
        output_cost = row.backend_reported_output_tokens * Fraction(row.output_price_per_mtok)
        assert Fraction(said["input_cost"]) * 10**6 == input_cost
        assert Fraction(said["output_cost"]) * 10**6 == output_cost
        assert Fraction(said["total_cost"]) * 10**6 == input_cost + output_cost
        assert all(
            len(said[name].partition(".")[2]) == 14
            for name in ("input_cost", "output_cost", "total_cost")
        )


def _assert_summary_agrees(gateway: Gateway, key: str, rows: Sequence[UsageRow]) -> None:
    written = [traffic.Written(_receipt(row), row.occurred_at) for row in rows]
    names: dict[str, tuple[str | None, str | None]] = {
        str(each.pk): (each.label, each.prefix) for each in gateway.organization.api_keys.all()
    }
    for bucket in ("hour", "day"):
        said = _read(gateway, key, "usage", group_by="model,api_key,time", bucket=bucket).json()
        whole = traffic.figures(written)
        assert {name: said[name] for name in whole} == whole
        breakdowns = said["breakdowns"]
        assert breakdowns["model"] == traffic.by_model(written)
        assert breakdowns["api_key"] == traffic.by_key(written, names)
        assert breakdowns["time"] == traffic.by_time(written, bucket)


def _receipt(row: UsageRow) -> Receipt:
    ids = ("organization_id", "api_key_id", "model_id", "model_version_id")
    facts = {name: getattr(row, name) for name in Receipt.__struct_fields__}
    return Receipt(**{**facts, **{name: str(facts[name]) for name in ids}})


def assert_limits_came_back(gateway: Gateway, model: str) -> Seen:
    """Assert that every reservation was settled, and that the backend's slot is free.

    The organization has ``TOKEN_LIMIT`` tokens a minute. A request for nearly all the tokens that
    the rows leave is admitted only when no earlier request still holds its reservation: that is half
    of the limit, and its refill takes half a minute.
    """
    used = sum(
        row.backend_reported_input_tokens + row.generated_output_tokens for row in gateway.rows()
    )
    room = TOKEN_LIMIT - used - 1000
    probe = ask(gateway, model, "[[sim tokens=3]]", streamed=False, max_completion_tokens=room)
    assert probe.complete, f"after the fault: {probe}"
    return probe
