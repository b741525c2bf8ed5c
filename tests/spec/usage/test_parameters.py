"""GET /v1/usage: its callers and its parameters, with the errors for wrong ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from accounts.keys import keys
from accounts.models import Organization, Scope
from tests.support.builders.summary_ledger import ALL, NOVEMBER, Ledger, utc

pytestmark = pytest.mark.django_db


def test_the_default_period_is_the_current_utc_month(reader: Client) -> None:
    now = datetime.now(UTC)
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (first + timedelta(days=32)).replace(day=1)

    period = reader.get("/v1/usage").json()["period"]

    assert period == {
        "start": f"{first:%Y-%m-%d}T00:00:00.000Z",
        "end": f"{following:%Y-%m-%d}T00:00:00.000Z",
        "bucket": "day",
    }


@pytest.mark.parametrize(
    ("group_by", "names"),
    [
        (None, ["model"]),
        ("", ["model"]),
        ("time", ["time"]),
        ("time,model", ["model", "time"]),
        (" api_key , api_key,", ["api_key"]),
        (ALL, ["model", "api_key", "time"]),
    ],
)
def test_only_the_requested_breakdowns_are_returned(
    ledger: Ledger, reader: Client, group_by: str | None, names: list[str]
) -> None:
    query = {**NOVEMBER, **({} if group_by is None else {"group_by": group_by})}

    body = reader.get("/v1/usage", query).json()

    assert list(body["breakdowns"]) == names
    everything = ledger.expected(utc(2026, 11, 1), utc(2026, 12, 1))
    assert body["breakdowns"] == {name: everything["breakdowns"][name] for name in names}
    assert body["tokens"] == everything["tokens"]


@pytest.mark.parametrize("path", ["/v1/usage", "/v1/usage/export"])
@pytest.mark.parametrize("scope", [Scope.INFERENCE, Scope.SPEECH, None])
def test_other_keys_and_none_are_one_and_the_same_401(
    organization: Organization, scope: Scope | None, path: str
) -> None:
    secret = keys.mint(organization, scope).secret if scope else None
    client = Client(headers={"authorization": f"Bearer {secret}"} if secret else {})

    answer = client.get(path, {"start": "not even a date"})

    assert answer.status_code == 401
    assert answer["www-authenticate"] == "Bearer"
    error = answer.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("authentication_error", None, None)


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ({"start": "yesterday"}, "invalid_query", "start"),
        ({"end": "2026-11-01T25:00:00Z"}, "invalid_query", "end"),
        ({"end": "0001-01-01T00:00:00+05:30"}, "invalid_query", "end"),
        ({"start": "1793491200"}, "invalid_query", "start"),
        ({"bucket": "week"}, "invalid_query", "bucket"),
        ({"group_by": "model,colour"}, "invalid_query", "group_by"),
        ({"api_key_id": "svc_live_abc123"}, "invalid_query", "api_key_id"),
        ({"model": "acme\0"}, "invalid_query", "model"),
        ({"start": "2026-11-02", "end": "2026-11-01"}, "period_inverted", "end"),
        ({"start": "2026-11-01", "end": "2026-11-01"}, "period_inverted", "end"),
        ({"start": "2026-09-01", "end": "2026-12-03T00:00:00.001Z"}, "period_too_long", "end"),
    ],
)
def test_a_bad_parameter_is_refused_with_its_code_and_name(
    reader: Client, query: dict[str, str], code: str, param: str
) -> None:
    answer = reader.get("/v1/usage", query)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", code, param)


def test_the_last_of_a_repeated_parameter_counts_and_unknown_ones_do_not(reader: Client) -> None:
    answer = reader.get("/v1/usage?bucket=week&bucket=hour&colour=red&model=")

    assert answer.status_code == 200
    assert answer.json()["period"]["bucket"] == "hour"
    assert answer.json()["filters"]["model"] is None


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("0001-01-01", "0001-01-02"),
        ("9999-12-31T22:30:00Z", "9999-12-31T23:45:00Z"),
    ],
)
def test_the_first_and_the_last_year_can_be_asked_for(reader: Client, start: str, end: str) -> None:
    answer = reader.get("/v1/usage", {"start": start, "end": end})

    assert answer.status_code == 200
    assert answer.json()["period"]["start"].startswith(start[:10])


@pytest.mark.parametrize("path", ["/v1/usage", "/v1/usage/export"])
def test_too_many_parameters_are_refused(reader: Client, path: str) -> None:
    query = "&".join(f"a{number}=1" for number in range(1001))

    answer = reader.get(f"{path}?{query}")

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"], error["param"]) == (
        "invalid_request_error",
        "invalid_query",
        None,
    )
    assert "1000" in error["message"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("20261101", "2026-11-01T00:00:00.000Z"),
        ("20261102T101112.5+0530", "2026-11-02T04:41:12.500Z"),
        ("2026-11-02T10Z", "2026-11-02T10:00:00.000Z"),
        ("2026-11-01T24:00:00Z", "2026-11-02T00:00:00.000Z"),
        ("2026-11-01T24:00-01:00", "2026-11-02T01:00:00.000Z"),
        ("2026-11-02T10:11:12.0000001Z", "2026-11-02T10:11:12.001Z"),
        ("2026-11-02T10:11:12,999000000Z", "2026-11-02T10:11:12.999Z"),
        ("2026-11-02T10:11:12.999000001Z", "2026-11-02T10:11:13.000Z"),
    ],
)
def test_basic_forms_of_a_timestamp_and_the_end_of_a_day_are_accepted(
    reader: Client, text: str, moment: str
) -> None:
    answer = reader.get("/v1/usage", {"start": text, "end": "2026-12-01"})

    assert answer.status_code == 200, answer.content
    assert answer.json()["period"]["start"] == moment


@pytest.mark.parametrize(
    "text",
    [
        "2026-1101",
        "2026-11-01T1011:12Z",
        "2026-11-01T24:00:01Z",
        "2026-11-01T23:59:60Z",
        "9999-12-31T24:00:00Z",
        "2026-11-01T",
        "2026-11-01Z",
        "2026-W45-7",
        "\u0662026-11-01",
        "2026-11-01T10:00:00" + "+00:00" * 5000,
    ],
)
def test_a_text_that_is_no_calendar_timestamp_is_refused(reader: Client, text: str) -> None:
    answer = reader.get("/v1/usage", {"start": "2026-10-31", "end": text})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "end")
    assert answer.json()["error"]["code"] == "invalid_query"


@pytest.mark.parametrize("name", ["start", "end"])
def test_a_refused_period_says_which_bound_was_a_default(reader: Client, name: str) -> None:
    sent = {"start": "2021-01-01", "end": "2037-01-01"}

    said = reader.get("/v1/usage", {name: sent[name]}).json()["error"]
    both = reader.get("/v1/usage", sent).json()["error"]

    other = {"start": "end", "end": "start"}[name]
    assert (said["code"], said["param"]) == ("period_too_long", "end")
    assert f"'{other}' was not sent; its default is 20" in said["message"]
    assert "default" not in both["message"]


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
@pytest.mark.parametrize("path", ["/v1/usage", "/v1/usage/export", "/v1/models", "/v1/models/a"])
def test_a_wrong_method_is_refused_before_a_missing_key(method: str, path: str) -> None:
    answer = getattr(Client(), method)(path)

    assert (answer.status_code, answer["allow"]) == (405, "GET, HEAD")
