"""What `make run` puts into its database, and what it leaves alone when it is started again."""

from __future__ import annotations

import pytest

from inference.models import ModelEntry
from svc_project.configuration.documents import load_catalog_values, stored_catalog
from svc_project.management import demo

SIMULATOR = "http://127.0.0.1:9000/v1"


@pytest.mark.django_db
def test_another_start_changes_nothing() -> None:
    assert len(demo.seed(SIMULATOR).keys) == 3

    again = demo.seed(SIMULATOR)

    assert (again.changes, again.keys, again.password) == ([], {}, None)


@pytest.mark.django_db
def test_another_start_keeps_what_an_operator_changed_of_a_model() -> None:
    demo.seed(SIMULATOR)
    models = stored_catalog()["models"]
    models[0]["pricing"]["input_per_mtok"] = "7.00"
    models[0]["default_max_output_tokens"] = 77
    load_catalog_values({"models": models}, only_plan=False)

    again = demo.seed("http://127.0.0.1:9001/v1")

    assert again.changes == [f"backend simulator: base_url {SIMULATOR} -> http://127.0.0.1:9001/v1"]
    assert stored_catalog()["models"] == models
    assert ModelEntry.objects.filter(published_at__isnull=False).count() == 2
