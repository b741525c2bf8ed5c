"""Pages and static files are compressed; secrets of forms, downloads and the API are not."""

from __future__ import annotations

import gzip
import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import ApiKey, Organization
from tests.support.pages.console import Insert, console, insert, organization, person

__all__ = ["console", "insert", "organization", "person"]

pytestmark = pytest.mark.django_db
GZIP = {"accept-encoding": "gzip, deflate, br"}
USAGE = "/console/usage?start=2026-10-01&end=2026-12-01"


def content(answer: Any) -> bytes:
    found = b"".join(answer.streaming_content) if answer.streaming else answer.content
    answer.close()
    return bytes(found)


@pytest.mark.parametrize(
    "path", [USAGE, "/console/keys", "/docs/", "/static/console.css", "/static/console.js"]
)
def test_pages_and_static_files_are_compressed_for_those_who_take_it(
    console: Client, path: str
) -> None:
    plain, compressed = console.get(path), console.get(path, headers=GZIP)

    assert "content-encoding" not in plain
    assert compressed["content-encoding"] == "gzip"
    for answer in (plain, compressed):
        assert "accept-encoding" in answer["vary"].lower()
    short, long = content(compressed), content(plain)
    assert int(compressed["content-length"]) == len(short)
    assert len(short) < 0.7 * len(long)

    def unmasked(page: bytes) -> bytes:
        return re.sub(rb'name="csrfmiddlewaretoken" value="\w+"', b"", page)

    assert unmasked(gzip.decompress(short)) == unmasked(long)


def test_the_length_of_a_page_tells_its_content_to_nobody() -> None:
    lengths = {len(content(Client().get("/docs/", headers=GZIP))) for _ in range(12)}

    assert len(lengths) > 3


def test_a_new_secret_is_not_compressed(console: Client, organization: Organization) -> None:
    answer = console.post("/console/keys/new", {"scope": "read", "label": "x"}, headers=GZIP)

    assert ApiKey.objects.get(organization=organization).prefix in answer.content.decode()
    assert "content-encoding" not in answer


@pytest.mark.parametrize(
    "path", ["/v1/usage", "/v1/usage/export?format=csv", "/console/usage/totals.csv"]
)
def test_downloads_and_the_api_are_not_compressed(
    console: Client, insert: Insert, path: str
) -> None:
    for hour in range(24):
        insert(f"2026-11-04T{hour:02}:00:00")

    answer = console.get(path, headers=GZIP)

    assert answer.status_code == 200
    assert "content-encoding" not in answer


@pytest.mark.parametrize("taken", [{}, GZIP])
def test_a_file_is_not_sent_again_while_it_is_the_same(
    client: Client, taken: dict[str, str]
) -> None:
    first = client.get("/static/console.css", headers=taken)
    content(first)
    known = {"if-modified-since": first["last-modified"]}
    if "etag" in first:
        known["if-none-match"] = first["etag"]

    again = client.get("/static/console.css", headers={**taken, **known})

    assert again.status_code == 304


def test_a_part_of_a_file_is_a_part_of_the_file_itself(client: Client) -> None:
    answer = client.get("/static/console.css", headers={**GZIP, "range": "bytes=3-9"})

    assert answer.status_code == 206
    assert content(answer) == content(client.get("/static/console.css"))[3:10]
