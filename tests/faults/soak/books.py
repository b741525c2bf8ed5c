"""Differences between clients, model server and ledger after a soak."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from types import SimpleNamespace
from typing import Any, Final

from tests.faults.soak.load import Load, SpeechSeen
from tests.faults.soak.place import Place
from tests.support.faults.oracle import assert_row_tells_what_was_seen

_CHAT_COLUMNS: Final = (
    *("request_id", "streamed", "outcome", "http_status", "error_code"),
    *("backend_reported_input_tokens", "backend_reported_output_tokens", "generated_output_tokens"),
    "delivered_output_tokens",
)
_SPEECH_COLUMNS: Final = (
    *("request_id", "transport", "outcome", "http_status", "error_type", "close_code"),
    *("characters", "audio_ms"),
)
Rows = dict[str, Any]
"""Rows by request id."""


def disagreements(place: Place, load: Load) -> list[str]:
    """All differences: rows that are missing, doubled or wrong."""
    found = list(load.failures)
    chats, twice = _rows(place, "usage_usagerow", _CHAT_COLUMNS)
    speeches, spoken_twice = _rows(place, "usage_speechrow", _SPEECH_COLUMNS)
    found += [f"{each}: two rows" for each in twice + spoken_twice]
    found += _chats_that_disagree(load, chats, _asked(place))
    found += _speeches_that_disagree(load.speeches, speeches)
    try:
        place.manage("verify_ledger")
    except AssertionError as error:
        found.append(f"verify_ledger: {str(error)[-2000:]}")
    return found


def _rows(place: Place, name: str, columns: Sequence[str]) -> tuple[Rows, list[str]]:
    with closing(place.connect()) as database:
        query = f"SELECT {', '.join(columns)} FROM {name}"  # names are ours
        rows = database.execute(query).fetchall()
    found: Rows = {}
    twice = []
    for row in rows:
        named = SimpleNamespace(**dict(zip(columns, row, strict=True)))
        if named.request_id in found:
            twice.append(named.request_id)
        found[named.request_id] = named
    return found, twice


def _asked(place: Place) -> Mapping[str, list[dict[str, Any]]]:
    """The model server's requests, by the hash of the prompt."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in place.chats_log.read_text().splitlines():
        entry = json.loads(line)
        found[entry["prompt_sha256"]].append(entry)
    return found


def _chats_that_disagree(
    load: Load, rows: Rows, asked: Mapping[str, list[dict[str, Any]]]
) -> Iterator[str]:
    claimed = set()
    unknown, ran_unknown = 0, 0
    for each in load.chats:
        entries = asked.get(each.prompt, [])
        if each.seen.request_id is None:
            unknown += 1
            ran_unknown += bool(entries)
            continue
        row = rows.get(each.seen.request_id)
        if row is None:
            if each.seen.status == 200 or entries:
                yield f"{each.seen.request_id}: {each.seen.told}, asked {len(entries)}, no row"
            continue
        claimed.add(row.request_id)
        if (
            load.place.postgresql is None
            and (row.outcome, row.error_code) == ("interrupted", "internal_error")
            and each.seen.code == "internal_error"
        ):
            # Database and journal were on one full disk: its answer was withheld, and the worker
            # was killed before its row could be stored.
            continue
        row.streamed = bool(row.streamed)
        try:
            assert_row_tells_what_was_seen(row, each.seen, entries)
        except AssertionError as error:
            yield f"{row.request_id}: {each} {row} {str(error)[:200]}"
        if each.left and row.outcome == "success" and each.seen.pieces == 0:
            yield f"{row.request_id}: left before anything came, and {row}"
    unclaimed = len(rows) - len(claimed)
    if not ran_unknown <= unclaimed <= unknown:
        yield (
            f"{unclaimed} chats' rows that no client can name, for {unknown} clients without an "
            f"answer, {ran_unknown} of whom reached the model server"
        )


def _speeches_that_disagree(seen: Sequence[SpeechSeen], rows: Rows) -> Iterator[str]:
    claimed = set()
    unknown = 0
    for each in seen:
        row = rows.get(each.request_id or "")
        if row is None:
            unknown += each.request_id is None
            if each.complete or (each.status == 200 and not each.session):
                yield f"{each}: no row"
            continue
        claimed.add(row.request_id)
        if problem := _speech_problem(each, row):
            yield f"{problem}: {each} {row}"
    if (unclaimed := len(rows) - len(claimed)) > unknown:
        yield f"{unclaimed} speech rows for {unknown} clients without an answer"


def _speech_problem(each: SpeechSeen, row: Any) -> str | None:
    if each.complete:
        if (row.outcome, row.error_type, row.close_code) != ("success", None, None):
            return "whole, and its row says otherwise"
        if row.characters != each.characters:
            return "other characters"
        if not each.session and abs(row.audio_ms - each.milliseconds) > 1:
            return "other sound"
    elif each.session:
        if each.code is not None and row.outcome == "success":
            return "closed early, and a success"
        if row.close_code is not None and each.code not in (None, row.close_code):
            return "another close code"
    elif each.status is not None and (row.http_status, row.error_type) != (each.status, each.code):
        return "told something else"
    return None
