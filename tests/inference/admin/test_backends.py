"""Backends and weights in the admin, as an operator clicks through them."""

from __future__ import annotations

import pytest
from django.test import Client

from inference.models import Backend, Deployment, WeightsRecord
from tests.support.builders import catalog_rows
from tests.support.pages.admin_forms import filled_in, text_of

pytestmark = pytest.mark.django_db


def test_weights_are_added_once_and_then_only_read(operator: Client) -> None:
    operator.post("/admin/inference/weightsrecord/add/", {"name": "acme/w@1", "source": "acme/w"})
    record = WeightsRecord.objects.get()
    address = f"/admin/inference/weightsrecord/{record.pk}/"

    assert operator.get(f"{address}change/").status_code == 200
    assert operator.post(f"{address}change/", {"name": "other", "source": "x"}).status_code == 403
    assert operator.get("/admin/inference/weightsrecord/?q=acme").status_code == 200


def test_weights_in_use_cannot_be_deleted(operator: Client) -> None:
    entry = catalog_rows.draft()
    address = f"/admin/inference/weightsrecord/{entry.weights_id}/delete/"

    assert operator.post(address, {"post": "yes"}).status_code == 403
    entry.delete()
    operator.post(address, {"post": "yes"})
    assert not WeightsRecord.objects.exists()


def test_a_backend_is_added_with_the_weights_it_serves(operator: Client) -> None:
    record = catalog_rows.weights()

    answer = operator.post(
        "/admin/inference/backend/add/",
        {
            "name": "gpu-1",
            "base_url": "http://10.0.0.5:9000/v1",
            "max_concurrency": 8,
            "running_usage": "none",
            "keep_alive": "auto",
            "prefix_cache": "shared",
            "output_cap_field": "both",
            "enabled": "on",
            "deployments-TOTAL_FORMS": 1,
            "deployments-INITIAL_FORMS": 0,
            "deployments-0-weights": record.pk,
            "deployments-0-model": "demo",
            "deployments-0-weight": 10,
            "deployments-0-enabled": "on",
        },
    )

    assert answer.status_code == 302
    deployment = Deployment.objects.get()
    assert (deployment.backend.name, deployment.model) == ("gpu-1", "demo")
    assert (deployment.weight, deployment.draining) == (10, False)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("base_url", "http://169.254.169.254/latest", "Link-local and instance-metadata addresses"),
        ("headers", '{"Authorization": "Bearer x"}', "Leave Authorization out; api_key_env names"),
        ("extra_fields", '{"cache_salt": "a"}', "Leave cache_salt out; prefix_cache decides"),
    ],
)
def test_what_cannot_be_sent_is_an_error_at_its_field(
    operator: Client, field: str, value: str, told: str
) -> None:
    backend = catalog_rows.backend()
    address = f"/admin/inference/backend/{backend.pk}/change/"
    form = filled_in(operator, address)

    stored = Backend.objects.values().get()
    assert told in text_of(operator.post(address, {**form, field: value}))
    assert Backend.objects.values().get() == stored

    good = {"headers": '{"x-provider": "openai"}', "prefix_cache": "organization"}
    assert operator.post(address, {**form, **good}).status_code == 302
    again = Backend.objects.get()
    assert (again.headers, again.extra_fields) == ({"x-provider": "openai"}, {})
    assert (again.base_url, again.prefix_cache) == (backend.base_url, "organization")


def test_the_backends_page_shows_why_a_backend_does_not_serve(operator: Client) -> None:
    backend = catalog_rows.backend(api_key_env="SVC_BACKEND_KEY_UNSET", enabled=False)

    for address in ("", f"{backend.pk}/change/"):
        shown = text_of(operator.get(f"/admin/inference/backend/{address}"))
        assert "It is switched off." in shown
        assert "No deployment is enabled." in shown
        assert "The variable SVC_BACKEND_KEY_UNSET is not set in this process." in shown


def test_a_backend_that_serves_cannot_be_deleted(operator: Client) -> None:
    entry = catalog_rows.published()
    backend = entry.weights.deployments.get().backend

    operator.post(f"/admin/inference/backend/{backend.pk}/delete/", {"post": "yes"})

    assert Backend.objects.filter(pk=backend.pk).exists()
