"""GET /v1/usage/export: parameters, callers, errors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from core.clock import now
from tests.support.builders.export_rows import COLUMNS, NOVEMBER, expected, make, save
from tests.support.readers import client_with, signed_in
from usage.api.export_views import filename
from usage.models import UsageRow
from usage.queries import cursors
from usage.queries.cursors import Cursor
from usage.queries.periods import Period

pytestmark = pytest.mark.django_db

PATH = "/v1/usage/export"
PERIOD = {"start": "2026-11-01", "end": "2026-12-01"}


@pytest.fixture
def rows(organization: Organization) -> list[UsageRow]:
    """Two settled rows of November."""
    return save(
        [make(organization.pk, NOVEMBER.start + timedelta(hours=hours)) for hours in (1, 2)]
    )


def error(answer: Any) -> tuple[int, str | None, str | None]:
    said = answer.json()["error"]
    return answer.status_code, said["code"], said["param"]


def test_a_page_has_columns_rows_and_a_cursor(reader: Client, rows: list[UsageRow]) -> None:
    answer = reader.get(PATH, {**PERIOD, "limit": "1"})

    assert answer.status_code == 200
    assert answer["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["columns", "rows", "next_cursor"]
    assert body["columns"] == COLUMNS
    assert body["rows"] == [expected(rows[0])]
    last = reader.get(PATH, {**PERIOD, "limit": "1", "cursor": body["next_cursor"]}).json()
    assert last["rows"] == [expected(rows[1])]
    assert last["next_cursor"] is None


def test_without_a_period_it_is_the_current_month(
    reader: Client, organization: Organization
) -> None:
    month = now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    save([make(organization.pk, month - timedelta(milliseconds=1))])
    (row,) = save([make(organization.pk, month)])

    assert [said["request_id"] for said in reader.get(PATH).json()["rows"]] == [row.request_id]


def test_a_page_has_1000_rows_unless_asked_otherwise(
    reader: Client, organization: Organization
) -> None:
    save([make(organization.pk, NOVEMBER.start, total_duration_ms=n) for n in range(1001)])

    assert len(reader.get(PATH, PERIOD).json()["rows"]) == 1000
    assert len(reader.get(PATH, {**PERIOD, "limit": ""}).json()["rows"]) == 1000
    assert len(reader.get(PATH, {**PERIOD, "limit": "10000"}).json()["rows"]) == 1001


@pytest.mark.parametrize(
    "limit", ["0", "10001", "-1", "+5", "1.5", "1e3", "many", " 7", "٣", "9" * 5000]
)
def test_a_limit_outside_1_to_10000_is_refused(reader: Client, limit: str) -> None:
    assert error(reader.get(PATH, {"limit": limit})) == (400, "invalid_query", "limit")


@pytest.mark.parametrize(
    ("parameters", "code", "param"),
    [
        ({"format": "xml"}, "invalid_query", "format"),
        ({"start": "2026-01-01", "end": "2026-04-04T00:00:00.001Z"}, "period_too_long", "end"),
        ({"cursor": "nonsense"}, "invalid_cursor", "cursor"),
        ({"format": "csv", "cursor": "nonsense"}, "cursor_not_supported", "cursor"),
        ({"format": "csv", "start": "2026-01-01", "end": "2026-05-01"}, "period_too_long", "end"),
    ],
)
def test_bad_parameters_are_named(
    reader: Client, parameters: dict[str, str], code: str, param: str
) -> None:
    assert error(reader.get(PATH, parameters)) == (400, code, param)


def test_unknown_and_empty_parameters_change_nothing(reader: Client, rows: list[UsageRow]) -> None:
    asked = {**PERIOD, "cursor": "", "format": "", "model": "", "group_by": "x", "page": "7"}

    assert len(reader.get(PATH, asked).json()["rows"]) == len(rows)


def test_a_cursor_of_another_organization_is_a_position_in_the_readers_own_rows(
    reader: Client, organization: Organization, rows: list[UsageRow]
) -> None:
    other = Organization.objects.create(name="Other")
    theirs = save([make(other.pk, NOVEMBER.start + timedelta(minutes=90 * n)) for n in (1, 2)])
    their_cursor = client_with(mint(other, Scope.READ).secret).get(PATH, {**PERIOD, "limit": "1"})

    body = reader.get(PATH, {**PERIOD, "cursor": their_cursor.json()["next_cursor"]}).json()

    assert theirs[0].occurred_at < rows[1].occurred_at
    assert [row["request_id"] for row in body["rows"]] == [rows[1].request_id]


def test_a_cursor_contains_nothing_about_its_reader(reader: Client, rows: list[UsageRow]) -> None:
    body = reader.get(PATH, {**PERIOD, "limit": "1"}).json()

    assert cursors.decode(body["next_cursor"]) == Cursor(rows[0].occurred_at, rows[0].request_id)


def test_a_console_session_reads_its_own_organization(
    organization: Organization, rows: list[UsageRow]
) -> None:
    other = Organization.objects.create(name="Other")
    save([make(other.pk, NOVEMBER.start)])
    browser = signed_in(organization)

    body = browser.get(PATH, PERIOD).json()

    assert {row["organization_id"] for row in body["rows"]} == {str(organization.pk)}
    assert len(body["rows"]) == 2
    assert browser.get("/v1/usage").json()["organization_id"] == str(organization.pk)
    assert browser.get("/v1/models").status_code == 200


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Acme", "acme"),
        ("  Łódź & Söhne, GmbH.  ", "odz-sohne-gmbh"),
        ('a"; rm -rf /\r\nX: y', "a-rm-rf-x-y"),
        ("../../etc/passwd", "etc-passwd"),
        ("x" * 120, "x" * 60),
        ("模型", None),
    ],
)
def test_the_file_name_is_the_organization_and_the_period(name: str, slug: str | None) -> None:
    organization = Organization(name=name)

    assert filename(organization, NOVEMBER) == (
        f"usage-{slug or organization.pk}-2026-11-01-2026-12-01.csv"
    )


def test_a_period_within_a_day_has_its_times_in_the_file_name() -> None:
    period = Period(
        NOVEMBER.start + timedelta(hours=10, minutes=30), NOVEMBER.start + timedelta(seconds=0.25)
    )

    assert filename(Organization(name="Acme"), period) == (
        "usage-acme-2026-11-01T103000Z-2026-11-01T000000250Z.csv"
    )
