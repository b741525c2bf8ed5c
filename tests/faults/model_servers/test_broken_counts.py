"""A tokenizer fails while a backend reports no usage: the answer is sent, with its row."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import catalog_rows
from tests.support.faults.case import Case
from tests.support.live import Gateway
from tests.support.live_catalog import backend, publish

NO_UNKNOWN: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"hello": 0}, "unk_token": "[UNK]"},
}
"""Loads, and fails at the first word that is not ``hello``: ``[UNK]`` is not in its vocabulary."""


@pytest.fixture
def case(gateway: Gateway, tmp_path: Path) -> Case:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(NO_UNKNOWN))
    weights = catalog_rows.weights(f"test/uncounted-{uuid.uuid4()}", tokenizer=str(path))
    entry = publish(gateway, backend(gateway), weights=weights)
    return Case(gateway, entry.identifier, [gateway.simulator.requests])


def test_a_count_that_fails_falls_back_on_the_pieces(case: Case, streamed: bool) -> None:
    seen = case.ask("say: bees fly over the hill [[sim fault=no_usage]]", streamed=streamed)

    (row,) = case.gateway.rows_when(1)
    assert seen.complete
    assert (row.outcome, row.http_status) == ("success", 200)
    assert row.backend_reported_output_tokens == 0
    assert row.generated_output_tokens == row.delivered_output_tokens > 0
