"""docs/api/usage.md matches the API: its example is run, its tables are compared."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from accounts.keys import keys
from accounts.models import ApiKey, Organization, Scope
from tests.support.builders import traffic
from tests.support.live import ROOT
from tests.support.readers import client_with
from usage.api import wire
from usage.queries.periods import Bucket, GroupBy
from usage.refusals import counts, recorder

PAGE = (ROOT / "docs/api/usage.md").read_text()
EXAMPLE: dict[str, Any] = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0])
DEMO, MINI = (entry["key"] for entry in EXAMPLE["breakdowns"]["model"])
UNATTRIBUTED, KEY = (entry["key"] for entry in EXAMPLE["breakdowns"]["api_key"])


@pytest.fixture
def reader(db: None, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client of the example's organization, after the example's traffic."""
    # Counts of refusals expire, and the example's month moves into the past.
    monkeypatch.setattr(recorder, "now", lambda: datetime(2026, 12, 1, tzinfo=UTC))
    organization = Organization.objects.create(pk=EXAMPLE["organization_id"], name="Acme")
    minted = keys.mint(organization, Scope.INFERENCE, KEY["api_key_label"]).api_key
    ApiKey.objects.filter(pk=minted.pk).update(
        id=uuid.UUID(KEY["api_key_id"]), prefix=KEY["api_key_prefix"]
    )
    _traffic(str(organization.pk))
    refused = counts.ThrottleKey(
        str(organization.pk),
        datetime(2026, 11, 12, 9, tzinfo=UTC),
        KEY["api_key_id"],
        DEMO["model_identifier"],
        "tokens",
    )
    counts.add_throttled(Counter({refused: 4}))
    return client_with(keys.mint(organization, Scope.READ).secret)


def _chat(moment: datetime, sent: int, said: int, prices: tuple[str, str], **facts: Any) -> None:
    """Write a row of ``sent`` and ``said`` tokens, all of them delivered unless ``facts`` say so."""
    figures = {
        "backend_reported_input_tokens": sent,
        "backend_reported_output_tokens": said,
        "generated_output_tokens": said,
        "delivered_output_tokens": said,
        "input_price_per_mtok": Decimal(prices[0]),
        "output_price_per_mtok": Decimal(prices[1]),
    }
    traffic.write(moment, **{**figures, **facts})


def _traffic(organization_id: str) -> None:
    demo = {"organization_id": organization_id, "api_key_id": KEY["api_key_id"], **DEMO}
    mini = {**demo, "api_key_id": UNATTRIBUTED["api_key_id"], **MINI}
    counted = {"svc_counted_input_tokens": 1010, "svc_counted_output_tokens": 398}
    first = {**demo, **counted, "backend_reported_reasoning_tokens": 200}
    left = {**demo, "outcome": "client_disconnected", "delivered_output_tokens": 150}
    end = datetime(2026, 11, 30, 23, 59, 59, 999_000, tzinfo=UTC)
    _chat(datetime(2026, 11, 1, 8, 30, tzinfo=UTC), 1000, 400, ("0.15", "0.60"), **first)
    _chat(end, 500, 300, ("0.182", "0.72"), **left)
    _chat(datetime(2026, 11, 30, 12, tzinfo=UTC), 600, 200, ("0.04", "0.12"), **mini)


def test_the_example_equals_the_servers_answer(reader: Client) -> None:
    (address,) = re.findall(r"^`GET (/v1/usage\?\S+)`$", PAGE, re.MULTILINE)

    answer = reader.get(address).json()

    assert answer == EXAMPLE
    assert json.dumps(answer) == json.dumps(EXAMPLE)  # the order of the fields, too


@pytest.mark.parametrize(
    ("heading", "struct"),
    [
        ("## The answer", wire.UsageSummary),
        ("### Tokens", wire.TokenFigures),
        ("### Throttled", wire.Throttled),
    ],
)
def test_the_tables_name_every_field_in_order(heading: str, struct: Any) -> None:
    section = PAGE.split(f"{heading}\n")[1].split("\n##")[0]

    named = [name.split(".")[0] for name in re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)]

    assert list(dict.fromkeys(named)) == list(struct.__struct_fields__)


def test_every_value_that_a_parameter_takes_is_documented() -> None:
    for value in (*GroupBy, *Bucket):
        assert f"`{value}`" in PAGE
