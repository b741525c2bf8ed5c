"""Who fails more than before, on the admin's home, and the lists that its numbers lead to."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.models import Organization
from tests.support.builders import catalog_rows
from tests.support.pages.ledger_lists import FAILED, listed, write
from usage.queries import failures


def lines(page: str) -> list[tuple[str, list[str]]]:
    """The cells of each line of the table of failures, and the addresses in them."""
    section = page[page.index('id="svc-failing"') :].partition("</section>")[0]
    return [
        (" ".join(re.sub(r"<[^>]+>", " ", row).split()), re.findall(r'href="([^"]+)"', row))
        for row in re.findall(r"<tr><td>.*?</tr>", section, re.DOTALL)
    ]


def test_who_fails_more_than_before_is_first_and_every_number_leads_to_its_rows(
    operator: Client,
) -> None:
    usual, worse = (Organization.objects.create(name=name) for name in ("usual", "worse"))
    catalog_rows.backend("gpu-1")
    write(usual, 10, **FAILED)
    write(usual, 10, days_ago=0.2)
    write(usual, 20, days_ago=3, **FAILED)
    write(worse, 6, **FAILED)
    write(worse, 2, days_ago=0.2)
    write(worse, 10, days_ago=2)
    write(worse, 3, days_ago=9, **FAILED)

    page = operator.get("/admin/").content.decode()

    found = lines(page)
    assert [words for words, _ in found] == [
        "worse 6 8 75.0 % 0.0 %",
        "usual 10 20 50.0 % 100.0 %",
        "gpu-1 16 28 57.1 % 66.7 %",
    ]
    numbers = [[6, 8], [10, 20, 20], [16, 28, 20]]
    for (_, (about, *addresses)), counts in zip(found, numbers, strict=True):
        assert operator.get(about).status_code == 200
        assert [listed(operator, each) for each in addresses] == counts


def test_without_failures_it_says_so_and_at_servers_the_newest_of_very_many_rows_count(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = Organization.objects.create(name="Northwind")
    write(organization, 3)
    assert "No chat failed in 24 hours." in operator.get("/admin/").content.decode()

    monkeypatch.setattr(failures, "MOST_COMPARED", 4)
    write(organization, 4, days_ago=0.05, **FAILED)

    page = operator.get("/admin/").content.decode()
    found = lines(page)
    assert [words for words, _ in found] == ["Northwind 4 7 57.1 % –", "gpu-1 4 4 100.0 % –"]  # noqa: RUF001
    assert "Model servers: of the newest 4 requests" in page
    assert [listed(operator, each) for each in found[0][1][1:]] == [4, 7]
    assert [listed(operator, each) for each in found[1][1]] == [4, 4]
