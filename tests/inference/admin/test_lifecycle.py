"""The lifecycle of a model in the admin: its buttons, pages and errors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from core import clock
from inference.catalog import lifecycle
from inference.catalog.lifecycle import Status, status
from inference.models import ModelEntry
from tests.support.builders import catalog_rows
from tests.support.pages.admin_forms import MODELS, logged_in, moment, page_of, text_of
from tests.support.pages.admin_forms import operator as operator_with

pytestmark = pytest.mark.django_db


def history(operator: Client, entry: ModelEntry) -> str:
    return text_of(operator.get(f"/admin/inference/modelentry/{entry.pk}/history/"))


def test_publishing_is_a_button_with_a_page_of_its_own(operator: Client) -> None:
    entry = catalog_rows.ready()
    assert page_of(entry, "publish") in operator.get(page_of(entry)).content.decode()
    assert "cannot be renamed" in text_of(operator.get(page_of(entry, "publish")))

    answer = operator.post(page_of(entry, "publish"), follow=True)

    assert "The model acme/demo-8b was published." in text_of(answer)
    entry.refresh_from_db()
    assert status(entry, clock.now()) is Status.ACTIVE
    assert "(Admin) published" in history(operator, entry)


def test_a_model_that_is_not_ready_says_what_is_missing(operator: Client) -> None:
    entry = catalog_rows.draft()
    before = text_of(operator.get(page_of(entry, "publish")))
    assert "has no price in force. Add one first. Add a price No enabled backend serves" in before

    answer = operator.post(page_of(entry, "publish"))

    assert answer.status_code == 200
    assert "has no price in force. Add one first." in text_of(answer)
    assert "published" not in history(operator, entry)


def test_superseding_asks_for_successor_and_date(operator: Client) -> None:
    entry, successor = catalog_rows.published("acme/one"), catalog_rows.published("acme/two")
    form = operator.get(page_of(entry, "supersede")).content.decode()
    assert "admin-autocomplete" in form
    shutdown_at = (clock.now() + timedelta(days=30)).replace(microsecond=0)

    operator.post(
        page_of(entry, "supersede"),
        {"superseded_by": successor.pk, **moment("shutdown_at", shutdown_at)},
    )

    entry.refresh_from_db()
    assert (entry.superseded_by, entry.shutdown_at) == (successor, shutdown_at)
    assert "superseded_by: none → acme/two" in history(operator, entry)


def test_the_successor_is_found_by_typing(operator: Client) -> None:
    catalog_rows.published("acme/two")
    catalog_rows.draft("acme/two-draft")

    answer = operator.get(
        "/admin/autocomplete/",
        {
            "term": "two",
            "app_label": "inference",
            "model_name": "modelentry",
            "field_name": "superseded_by",
        },
    )

    assert [found["text"] for found in answer.json()["results"]] == ["acme/two"]


def test_a_shutdown_date_that_has_passed_is_an_error_at_its_field(operator: Client) -> None:
    entry, successor = catalog_rows.published("acme/one"), catalog_rows.published("acme/two")

    passed = moment("shutdown_at", clock.now() - timedelta(days=1))
    answer = operator.post(page_of(entry, "supersede"), {"superseded_by": successor.pk, **passed})

    assert answer.context["form"].errors == {
        "shutdown_at": ["The shutdown date has passed. Give a later one."]
    }
    entry.refresh_from_db()
    assert status(entry, clock.now()) is Status.ACTIVE


def test_a_notice_is_moved_and_withdrawn(operator: Client) -> None:
    entry = catalog_rows.published("acme/one")
    lifecycle.supersede(entry, catalog_rows.published("acme/two"))
    shutdown_at = (clock.now() + timedelta(days=9)).replace(microsecond=0)

    operator.post(page_of(entry, "move-shutdown"), moment("shutdown_at", shutdown_at))
    entry.refresh_from_db()
    assert entry.shutdown_at == shutdown_at

    operator.post(page_of(entry, "withdraw"))
    entry.refresh_from_db()
    assert status(entry, clock.now()) is Status.ACTIVE
    assert history(operator, entry).count("(Admin)") == 2


@pytest.mark.parametrize(
    ("make", "offered"),
    [
        (catalog_rows.ready, {"publish"}),
        (catalog_rows.published, {"supersede"}),
        (catalog_rows.retired, set()),
    ],
)
def test_only_possible_actions_are_offered(operator: Client, make: Any, offered: set[str]) -> None:
    entry = make()

    content = operator.get(page_of(entry)).content.decode()

    verbs = {"publish", "supersede", "move-shutdown", "withdraw"}
    assert {verb for verb in verbs if page_of(entry, verb) in content} == offered


def test_a_lifecycle_action_needs_a_post(operator: Client) -> None:
    entry = catalog_rows.ready()

    operator.get(page_of(entry, "publish"))

    entry.refresh_from_db()
    assert status(entry, clock.now()) is Status.DRAFT


def test_an_action_on_a_deleted_entry_leads_back_to_the_list(operator: Client) -> None:
    entry = catalog_rows.ready()
    gone = page_of(entry, "publish")
    entry.delete()

    assert operator.get(gone)["location"] == MODELS


def test_staff_without_the_permission_cannot_move_a_model() -> None:
    entry = catalog_rows.ready()

    assert logged_in(operator_with()).post(page_of(entry, "publish")).status_code == 403
