"""The frame of the admin: one menu, the tables that the home leaves out, and forms without idle parts."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.test import Client

from tests.support.pages.admin_forms import logged_in, text_of
from tests.support.pages.admin_forms import operator as operator_with

pytestmark = pytest.mark.django_db


def menu(client: Client, address: str) -> list[tuple[str, str, bool]]:
    page = client.get(address).content.decode()
    bar = re.search(r'<nav class="svc-menu".*?</nav>', page, re.DOTALL)
    assert bar is not None
    return [
        (label, link, bool(current))
        for link, current, label in re.findall(
            r'<a href="([^"]+)"( aria-current="page")?>(\w+)</a>', bar[0]
        )
    ]


def test_every_page_has_the_menu_and_marks_its_part(operator: Client) -> None:
    parts = menu(operator, "/admin/")

    assert [label for label, *_ in parts] == [
        *("Now", "Customers", "Models", "Servers", "Money", "Audit"),
    ]
    for label, address, _ in parts:
        here = [each for each, _, current in menu(operator, address) if current]
        assert here == [label]
    for model in admin.site._registry:
        address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert sum(current for *_, current in menu(operator, address)) <= 1


def test_the_menu_has_what_the_viewer_may_open() -> None:
    viewer = logged_in(operator_with("inference.view_backend"))

    found = menu(viewer, "/admin/")

    assert [label for label, *_ in found] == ["Now", "Servers"]
    assert all(viewer.get(address).status_code == 200 for _, address, _ in found)


SECOND: dict[str, str] = {
    "/admin/auth/group/": "/admin/accounts/user/",
    "/admin/inference/capturereading/": "/admin/inference/diagnosticcapture/",
    "/admin/inference/weightsrecord/": "/admin/inference/modelentry/",
    "/admin/speech/cloneupload/": "/admin/speech/voiceclone/",
    "/admin/usage/speechday/": "/admin/usage/speechrow/",
}


@pytest.mark.parametrize(("hidden", "owner"), SECOND.items())
def test_a_rare_table_is_reached_from_what_it_belongs_to(
    operator: Client, hidden: str, owner: str
) -> None:
    link = f'href="{hidden}"'

    assert link not in operator.get("/admin/").content.decode()
    assert link in operator.get(owner).content.decode()
    assert link in operator.get(f"/admin/{hidden.split('/')[2]}/").content.decode()


def test_a_form_for_a_new_row_shows_no_row_that_it_cannot_fill(operator: Client) -> None:
    page = operator.get("/admin/inference/modelentry/add/").content.decode()

    assert "Context length" in text_of(operator.get("/admin/inference/modelentry/add/"))
    assert 'class="readonly"' not in page
    assert "Save and add another" not in page
    assert "_addanother" not in page


def test_a_page_beyond_the_rights_says_so_in_the_frame_of_the_console() -> None:
    viewer = logged_in(operator_with("usage.view_usagerow"))

    answer = viewer.get("/admin/usage/usagerow/add/")

    assert answer.status_code == 403
    page = answer.content.decode()
    assert "Your rights do not include this page" in page
    assert 'href="/admin/"' in page


def test_an_empty_list_says_what_it_would_have(operator: Client) -> None:
    for model in admin.site._registry:
        if not model._default_manager.exists():
            page = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
            shown = operator.get(page).content.decode()
            assert re.search(r'<p class="svc-empty">.{20,}</p>', shown), page
            assert "Nothing is here yet." not in shown, page

    searched = operator.get("/admin/accounts/apikey/?q=nobody").content.decode()
    assert 'Nothing fits the search and the filters. <a href="?">Show everything</a>' in searched
