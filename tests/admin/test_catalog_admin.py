"""The catalog in the admin, as an operator clicks through it."""

from __future__ import annotations

import html
import json
import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts.models import Organization, User
from inference import lifecycle
from inference.lifecycle import Status, status
from inference.models import Backend, Deployment, ModelEntry, Price, WeightsRecord
from svc_project.lib import clock
from tests.inference import making

pytestmark = pytest.mark.django_db

MODELS = "/admin/inference/modelentry/"
PASSWORD = "correct horse battery"


@pytest.fixture
def operator() -> Client:
    user = User.objects.create_superuser("op@example.com", PASSWORD)
    client = Client()
    client.force_login(user)
    return client


def page_of(entry: ModelEntry, page: str = "change") -> str:
    return f"{MODELS}{entry.pk}/{page}/"


def text_of(answer: Any) -> str:
    """The page without its tags, blanks made one."""
    plain = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", answer.content.decode(), flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(plain))


def moment(name: str, at: datetime | None) -> dict[str, str]:
    return {
        f"{name}_0": at.strftime("%Y-%m-%d") if at else "",
        f"{name}_1": at.strftime("%H:%M:%S") if at else "",
    }


def entry_form(entry: ModelEntry | None, **changes: Any) -> dict[str, Any]:
    """What the browser sends for an entry whose page is saved as it is."""
    prices = entry.prices.count() if entry else 0
    columns: dict[str, Any] = {
        "identifier": entry.identifier if entry else "",
        "weights": entry.weights_id if entry else "",
        "context_length": 32768,
        "max_request_bytes": 1_048_576,
        "default_max_output_tokens": 2048,
        "prices-TOTAL_FORMS": prices + 1,
        "prices-INITIAL_FORMS": prices,
        f"prices-{prices}-currency": "USD",
        **moment(f"prices-{prices}-effective_from", None),
        "limits-TOTAL_FORMS": 0,
        "limits-INITIAL_FORMS": 0,
    }
    for number, price in enumerate(entry.prices.all() if entry else ()):
        columns[f"prices-{number}-id"] = price.pk
    return {**columns, **changes}


def test_the_list_shows_each_model_with_its_standing_and_price(operator: Client) -> None:
    making.published("acme/active", tool_calling=True)
    entry = making.published("acme/leaving")
    lifecycle.supersede(
        entry, making.published("acme/next"), clock.now() + timedelta(days=12, hours=1)
    )
    making.draft("acme/draft")
    making.retired("acme/gone", making.published("acme/other"))

    answer = operator.get(MODELS)

    assert answer.status_code == 200
    shown = text_of(answer)
    assert "superseded, 12 days left" in shown
    assert "0.15 / 0.60 USD" in shown
    for badge in ("svc-active", "svc-draft", "svc-retired", "svc-superseded"):
        assert badge in answer.content.decode()
    assert "Delete selected" not in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=draft", {"acme/draft"}),
        ("status=active", {"acme/next", "acme/last"}),
        ("status=superseded", {"acme/soon", "acme/undated"}),
        ("status=retired", {"acme/gone"}),
        ("shutdown=soon", {"acme/soon"}),
        ("q=soon", {"acme/soon"}),
    ],
)
def test_the_list_is_filtered_and_searched(operator: Client, query: str, found: set[str]) -> None:
    making.draft("acme/draft")
    last = making.published("acme/last")
    following = making.published("acme/next")
    lifecycle.supersede(making.published("acme/soon"), following, clock.now() + timedelta(days=29))
    lifecycle.supersede(making.published("acme/undated"), following)
    making.retired("acme/gone", last)

    answer = operator.get(f"{MODELS}?{query}")

    assert {row.identifier for row in answer.context["cl"].result_list} == found


def test_an_operator_adds_a_draft_with_its_price(operator: Client) -> None:
    record = making.weights()

    answer = operator.post(
        f"{MODELS}add/",
        entry_form(
            None,
            identifier="acme/new",
            weights=record.pk,
            **{"prices-0-input_per_mtok": "0.15", "prices-0-output_per_mtok": "0.60"},
        ),
    )

    assert answer.status_code == 302, answer.context["errors"]
    entry = ModelEntry.objects.get()
    assert status(entry, clock.now()) is Status.DRAFT
    assert entry.prices.get().input_per_mtok == Decimal("0.15")


def test_publishing_is_a_button_with_a_page_of_its_own(operator: Client) -> None:
    entry = making.ready()
    assert page_of(entry, "publish") in operator.get(page_of(entry)).content.decode()
    assert "cannot be renamed" in text_of(operator.get(page_of(entry, "publish")))

    answer = operator.post(page_of(entry, "publish"), follow=True)

    assert "The model acme/demo-8b was published." in text_of(answer)
    entry.refresh_from_db()
    assert status(entry, clock.now()) is Status.ACTIVE
    assert str(LogEntry.objects.get().get_change_message()) == "Was published."


def test_a_model_that_is_not_ready_says_what_is_missing(operator: Client) -> None:
    entry = making.draft()

    answer = operator.post(page_of(entry, "publish"))

    assert answer.status_code == 200
    assert "has no price in force. Add one first." in text_of(answer)
    assert not LogEntry.objects.exists()


def test_superseding_asks_for_successor_and_date(operator: Client) -> None:
    entry, successor = making.published("acme/one"), making.published("acme/two")
    form = operator.get(page_of(entry, "supersede")).content.decode()
    assert "admin-autocomplete" in form
    shutdown_at = (clock.now() + timedelta(days=30)).replace(microsecond=0)

    operator.post(
        page_of(entry, "supersede"),
        {"superseded_by": successor.pk, **moment("shutdown_at", shutdown_at)},
    )

    entry.refresh_from_db()
    assert (entry.superseded_by, entry.shutdown_at) == (successor, shutdown_at)
    assert "Successor: acme/two." in LogEntry.objects.get().get_change_message()


def test_the_successor_is_found_by_typing(operator: Client) -> None:
    making.published("acme/two")
    making.draft("acme/two-draft")

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
    entry, successor = making.published("acme/one"), making.published("acme/two")

    answer = operator.post(
        page_of(entry, "supersede"),
        {
            "superseded_by": successor.pk,
            **moment("shutdown_at", clock.now() - timedelta(days=1)),
        },
    )

    assert answer.context["form"].errors == {
        "shutdown_at": ["The shutdown date has passed. Give a later one."]
    }
    entry.refresh_from_db()
    assert status(entry, clock.now()) is Status.ACTIVE


def test_a_circle_is_an_error_at_the_successor(operator: Client) -> None:
    one, two = making.published("acme/one"), making.published("acme/two")
    lifecycle.supersede(one, two)

    answer = operator.post(page_of(two, "supersede"), {"superseded_by": one.pk})

    assert set(answer.context["form"].errors) == {"superseded_by"}


def test_a_notice_is_moved_and_withdrawn(operator: Client) -> None:
    entry = making.published("acme/one")
    lifecycle.supersede(entry, making.published("acme/two"))
    shutdown_at = (clock.now() + timedelta(days=9)).replace(microsecond=0)

    operator.post(page_of(entry, "move-shutdown"), moment("shutdown_at", shutdown_at))
    entry.refresh_from_db()
    assert entry.shutdown_at == shutdown_at

    operator.post(page_of(entry, "withdraw"))
    entry.refresh_from_db()
    assert status(entry, clock.now()) is Status.ACTIVE
    assert LogEntry.objects.count() == 2


@pytest.mark.parametrize(
    ("make", "offered"),
    [
        (making.ready, {"publish"}),
        (making.published, {"supersede"}),
        (making.retired, set()),
    ],
)
def test_only_the_verbs_that_fit_are_offered(
    operator: Client, make: Any, offered: set[str]
) -> None:
    entry = make()

    content = operator.get(page_of(entry)).content.decode()

    verbs = {"publish", "supersede", "move-shutdown", "withdraw"}
    assert {verb for verb in verbs if page_of(entry, verb) in content} == offered


def test_a_verb_is_not_done_by_following_a_link(operator: Client) -> None:
    entry = making.ready()

    operator.get(page_of(entry, "publish"))

    entry.refresh_from_db()
    assert status(entry, clock.now()) is Status.DRAFT


def test_a_verb_on_an_entry_that_is_gone_leads_back_to_the_list(operator: Client) -> None:
    entry = making.ready()
    gone = page_of(entry, "publish")
    entry.delete()

    assert operator.get(gone)["location"] == MODELS


def test_staff_without_the_permission_cannot_move_a_model() -> None:
    entry = making.ready()
    client = Client()
    client.force_login(User.objects.create_user("s@example.com", PASSWORD, is_staff=True))

    assert client.post(page_of(entry, "publish")).status_code == 403


def test_a_stranger_is_asked_to_log_in() -> None:
    answer = Client().post(page_of(making.ready(), "publish"))

    assert answer.status_code == 302
    assert "/admin/login/" in answer["location"]


def test_the_page_shows_exactly_what_clients_are_served(operator: Client) -> None:
    entry = making.published()

    content = operator.get(page_of(entry)).content.decode()

    panel = re.search(r'<pre class="svc-served">(.*?)</pre>', content, re.S)
    assert panel
    shown = json.loads(html.unescape(panel[1]))
    assert shown["id"] == "acme/demo-8b"
    assert shown["pricing"]["input_per_mtok"] == "0.15"
    assert shown["lifecycle"] == {"status": "active", "superseded_by": None, "shutdown_at": None}


@pytest.mark.parametrize(
    ("make", "told"), [(making.ready, "model_not_found"), (making.retired, "model_retired")]
)
def test_the_page_says_why_a_model_is_not_served(operator: Client, make: Any, told: str) -> None:
    shown = text_of(operator.get(page_of(make())))

    assert "Not served:" in shown
    assert told in shown


def test_a_published_model_can_be_neither_renamed_nor_re_pinned_nor_deleted(
    operator: Client,
) -> None:
    entry = making.published()
    pinned = entry.weights

    answer = operator.post(
        page_of(entry),
        entry_form(entry, identifier="acme/x", weights=making.weights().pk, context_length=65536),
    )

    assert answer.status_code == 302
    entry.refresh_from_db()
    assert (entry.identifier, entry.weights) == ("acme/demo-8b", pinned)
    assert entry.context_length == 65536
    assert operator.post(page_of(entry, "delete"), {"post": "yes"}).status_code == 403


def test_a_draft_can_be_deleted(operator: Client) -> None:
    entry = making.ready()

    operator.post(page_of(entry, "delete"), {"post": "yes"})

    assert not ModelEntry.objects.exists()


def test_nothing_of_a_retired_model_can_be_edited(operator: Client) -> None:
    entry = making.retired()

    operator.post(
        page_of(entry),
        entry_form(
            entry,
            context_length=1,
            **{"prices-1-input_per_mtok": "9", "prices-1-output_per_mtok": "9"},
        ),
    )

    entry.refresh_from_db()
    assert entry.context_length == 32768
    assert entry.prices.count() == 1


def test_a_figure_that_does_not_fit_is_told(operator: Client) -> None:
    entry = making.ready()

    answer = operator.post(page_of(entry), entry_form(entry, default_max_output_tokens=99_999))

    assert "default_max_output_tokens must not be above context_length." in text_of(answer)


def test_a_price_is_added_and_old_ones_cannot_be_edited(operator: Client) -> None:
    entry = making.published()
    before = Price.objects.get()

    answer = operator.post(
        page_of(entry),
        entry_form(
            entry,
            **{
                "prices-0-input_per_mtok": "99",
                "prices-1-input_per_mtok": "0.20",
                "prices-1-output_per_mtok": "0.80",
            },
        ),
        follow=True,
    )

    assert "The new price applies to requests from" in text_of(answer)
    assert [price.input_per_mtok for price in Price.objects.order_by("effective_from")] == [
        before.input_per_mtok,
        Decimal("0.20"),
    ]


def test_saving_a_model_as_it_is_adds_no_price(operator: Client) -> None:
    entry = making.published()

    operator.post(page_of(entry), entry_form(entry))

    assert Price.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (moment("prices-1-effective_from", datetime(2020, 1, 1)), "cannot take effect in the past"),  # noqa: DTZ001  # as typed into the form
        ({"prices-1-input_per_mtok": "-1"}, "greater than or equal to 0"),
        ({"prices-1-input_per_mtok": "0.000000001"}, "no more than 8 decimal places"),
        ({"prices-1-currency": "usd"}, "three capital letters"),
    ],
)
def test_a_wrong_price_is_told_at_its_field(
    operator: Client, changes: dict[str, str], told: str
) -> None:
    entry = making.published()
    price = {"prices-1-input_per_mtok": "1", "prices-1-output_per_mtok": "1"}

    answer = operator.post(page_of(entry), entry_form(entry, **{**price, **changes}))

    assert told in text_of(answer)
    assert Price.objects.count() == 1


def test_an_organizations_own_limit_is_set_on_the_model(operator: Client) -> None:
    entry, organization = making.published(), Organization.objects.create(name="Acme")

    answer = operator.post(
        page_of(entry),
        entry_form(
            entry,
            **{
                "limits-TOTAL_FORMS": 1,
                "limits-0-organization": organization.pk,
                "limits-0-requests_per_minute": "7",
            },
        ),
    )

    assert answer.status_code == 302
    limit = entry.limits.get()
    assert (limit.requests_per_minute, limit.tokens_per_minute) == (7, None)


def test_weights_are_added_once_and_then_only_read(operator: Client) -> None:
    operator.post("/admin/inference/weightsrecord/add/", {"name": "acme/w@1", "source": "acme/w"})
    record = WeightsRecord.objects.get()
    address = f"/admin/inference/weightsrecord/{record.pk}/"

    assert operator.get(f"{address}change/").status_code == 200
    assert operator.post(f"{address}change/", {"name": "other", "source": "x"}).status_code == 403
    assert operator.get("/admin/inference/weightsrecord/?q=acme").status_code == 200


def test_weights_in_use_cannot_be_deleted(operator: Client) -> None:
    entry = making.draft()
    address = f"/admin/inference/weightsrecord/{entry.weights_id}/delete/"

    assert operator.post(address, {"post": "yes"}).status_code == 403
    entry.delete()
    operator.post(address, {"post": "yes"})
    assert not WeightsRecord.objects.exists()


def test_a_backend_is_added_with_the_weights_it_serves(operator: Client) -> None:
    record = making.weights()

    answer = operator.post(
        "/admin/inference/backend/add/",
        {
            "name": "gpu-1",
            "base_url": "http://10.0.0.5:9000/v1",
            "max_concurrency": 8,
            "running_usage": "none",
            "keep_alive": "auto",
            "output_cap_field": "both",
            "enabled": "on",
            "deployments-TOTAL_FORMS": 1,
            "deployments-INITIAL_FORMS": 0,
            "deployments-0-weights": record.pk,
            "deployments-0-model": "demo",
            "deployments-0-enabled": "on",
        },
    )

    assert answer.status_code == 302
    deployment = Deployment.objects.get()
    assert (deployment.backend.name, deployment.model) == ("gpu-1", "demo")


def test_a_dangerous_backend_address_is_an_error_at_its_field(operator: Client) -> None:
    answer = operator.post(
        "/admin/inference/backend/add/",
        {
            "name": "gpu-1",
            "base_url": "http://169.254.169.254/latest",
            "max_concurrency": 8,
            "deployments-TOTAL_FORMS": 0,
            "deployments-INITIAL_FORMS": 0,
        },
    )

    assert "Link-local and instance-metadata addresses are no backends." in text_of(answer)
    assert not Backend.objects.exists()


def test_headers_that_cannot_be_sent_are_an_error_at_their_field(operator: Client) -> None:
    backend = making.backend()
    columns = {
        "name": backend.name,
        "base_url": backend.base_url,
        "max_concurrency": 8,
        "running_usage": "none",
        "keep_alive": "auto",
        "output_cap_field": "max_tokens",
        "deployments-TOTAL_FORMS": 0,
        "deployments-INITIAL_FORMS": 0,
    }
    address = f"/admin/inference/backend/{backend.pk}/change/"

    answer = operator.post(address, {**columns, "headers": '{"Authorization": "Bearer x"}'})
    assert "Leave Authorization out; api_key_env names the backend's key." in text_of(answer)

    fields = {"headers": '{"x-provider": "openai"}', "extra_fields": ""}
    assert operator.post(address, {**columns, **fields}).status_code == 302
    backend.refresh_from_db()
    assert (backend.headers, backend.extra_fields) == ({"x-provider": "openai"}, {})
    assert backend.output_cap_field == "max_tokens"


def test_the_backends_page_says_what_keeps_one_from_serving(operator: Client) -> None:
    backend = making.backend(api_key_env="SVC_BACKEND_KEY_UNSET", enabled=False)

    for address in ("", f"{backend.pk}/change/"):
        shown = text_of(operator.get(f"/admin/inference/backend/{address}"))
        assert "It is switched off." in shown
        assert "No deployment is enabled." in shown
        assert "The variable SVC_BACKEND_KEY_UNSET is not set in this process." in shown


def test_a_backend_that_serves_cannot_be_deleted(operator: Client) -> None:
    entry = making.published()
    backend = entry.weights.deployments.get().backend

    operator.post(f"/admin/inference/backend/{backend.pk}/delete/", {"post": "yes"})

    assert Backend.objects.filter(pk=backend.pk).exists()


@pytest.mark.parametrize("page", ["change", "supersede", "publish"])
def test_the_pages_carry_no_inline_script_or_style(operator: Client, page: str) -> None:
    content = operator.get(page_of(making.published(), page)).content.decode()

    assert not re.search(r"\son\w+=|\sstyle=|<style", content)
    scripts = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", content)
    assert all("application/json" in script for script in scripts)
