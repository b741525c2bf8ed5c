"""The totals of a period as CSV: they add up to the API's summary, and hold no formula."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest
from django.test import Client

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from tests.support.pages.console import NOVEMBER, Insert


def totals(console: Client, query: str) -> list[dict[str, str]]:
    answer = console.get(f"/console/usage/totals.csv?{NOVEMBER}&{query}")
    assert answer.status_code == 200
    assert answer["content-type"] == "text/csv; charset=utf-8"
    name = f"usage-northwind-{query.replace('=', '-')}-2026-11-01-2026-12-01.csv"
    assert answer["content-disposition"] == f'attachment; filename="{name}"'
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


@pytest.mark.parametrize(("by", "lines"), [("day", 2), ("model", 2), ("key", 2)])
def test_lines_add_up_to_the_summary(
    console: Client,
    organization: Organization,
    stranger: Organization,
    insert: Insert,
    by: str,
    lines: int,
) -> None:
    key = str(mint(organization, Scope.INFERENCE, "checkout").api_key.pk)
    for day, model in (("03", "acme/a"), ("03", "acme/b"), ("04", "acme/a")):
        insert(f"2026-11-{day}T10:20:00", model_identifier=model, backend_reported_input_tokens=777)
    insert("2026-11-04T11:00:00", api_key_id=key, model_identifier="acme/b")
    insert("2026-11-04T11:00:00", organization_id=str(stranger.pk))

    found = totals(console, f"by={by}")

    summary = console.get(f"/v1/usage?{NOVEMBER}").json()
    assert len(found) == lines
    assert sum(int(each["requests"]) for each in found) == summary["requests"] == 4
    assert sum(Decimal(each["cost"]) for each in found) == Decimal(summary["cost"]["total"])
    tokens = summary["tokens"]
    assert sum(int(each["output_tokens"]) for each in found) == tokens["backend_reported_output"]


def test_a_label_is_never_a_formula(
    console: Client, organization: Organization, insert: Insert
) -> None:
    key = mint(organization, Scope.INFERENCE, "=HYPERLINK(1)").api_key
    insert("2026-11-04T11:00:00", api_key_id=str(key.pk))

    (line,) = totals(console, "by=key")

    assert line["api_key_label"] == "'=HYPERLINK(1)"


def test_currencies_are_not_added(console: Client, insert: Insert) -> None:
    for currency in ("USD", "EUR"):
        insert("2026-11-04T11:00:00", price_currency=currency)

    assert [line["currency"] for line in totals(console, "by=model")] == ["EUR", "USD"]
