"""The page of error codes has every error of the code base, and is linked from failures."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest
from django.test import Client

import accounts
import inference
import speech
import svc_project
import usage
from core import errors
from core.errors import ApiError, name_of
from inference.schema_subset import Code
from speech.requests.stream_consumer import CLOSE_CODES
from svc_project.reference.error_guide import SECTIONS, cases
from tests.support.pages.console import Insert, words
from usage.console.explanations import cause, cure, explained_at
from usage.models import Outcome, SpeechOutcome, SpeechRow

PAGE = "/docs/errors/"
EXPLAINED = [error for section in SECTIONS.values() for error in section]
BASES = {ApiError, errors.ServerError, errors.ServiceUnavailable}
"""Classes that are never answered themselves."""
PROGRAMS = re.compile(r"\.migrations|\.management\.commands|\.worker$")
"""Modules that raise no such error; a worker's may need a package that is not installed."""


def every_error() -> set[type[ApiError]]:
    """The error classes of all modules, answered or not."""
    for package in (accounts, inference, speech, svc_project, usage):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not PROGRAMS.search(found.name):
                importlib.import_module(found.name)
    own = (each for each in _below(ApiError) if not each.__module__.startswith("tests"))
    return {ApiError, *own}


def _below(error: type[ApiError]) -> Iterator[type[ApiError]]:
    for each in error.__subclasses__():
        yield each
        yield from _below(each)


@pytest.fixture
def page(client: Client) -> str:
    answer = client.get(PAGE)
    assert answer.status_code == 200
    return answer.content.decode()


def entry(page: str, anchor: str) -> str:
    """The words of an error's entry."""
    found = re.search(rf'<article[^>]* id="{anchor}">(.*?)</article>', page, re.DOTALL)
    assert found is not None, f"{anchor} is not on the page"
    return words(found[1])


def test_every_error_class_has_a_cause_and_a_cure() -> None:
    found = every_error()
    explained = {case for error in EXPLAINED for case in cases(error)}

    assert {each.__name__ for each in found - explained - BASES} == set()
    assert [each.__name__ for each in explained if not (each.cause and each.cure)] == []


def test_a_case_of_another_error_has_its_code_and_status() -> None:
    """A class with a code or a status of its own has an entry of its own."""
    for error in EXPLAINED:
        for case in cases(error):
            assert (case.code, case.status) == (error.code, error.status), case.__name__


def test_the_page_has_every_code_with_its_status_and_its_cure(page: str) -> None:
    for error in every_error() - BASES:
        if error.code is not None:
            shown = entry(page, error.code)
            assert str(error.status) in shown
            assert "What to do:" in shown
    for error in EXPLAINED:
        shown = entry(page, name_of(error))
        assert error.cause.replace("`", "").split(".")[0] in re.sub(r" (?=[.,])", "", shown)


def test_no_two_errors_have_one_anchor(page: str) -> None:
    anchors = re.findall(r' id="([^"]+)"', page)

    assert len(anchors) == len(set(anchors))


def test_messages_that_never_change_are_quoted(page: str) -> None:
    assert "The connection to the model server was lost." in entry(page, "backend_unavailable")


def test_violations_and_close_codes_are_explained(page: str) -> None:
    said = words(page)

    assert [code for code in Code if code.value not in said] == []
    closes = page.partition('id="closes"')[2]
    assert [code for code in CLOSE_CODES.values() if f">{code}<" not in closes] == []


@pytest.mark.parametrize("outcome", sorted({*Outcome.values, *SpeechOutcome.values}))
def test_every_outcome_is_explained_and_every_failure_has_a_cure(outcome: str) -> None:
    assert cause(outcome)
    assert bool(cure(outcome)) == (outcome != "success")


@pytest.mark.parametrize("outcome", sorted({*SpeechOutcome.values} - {"success"}))
def test_every_failure_of_speech_leads_to_a_place_of_the_page(page: str, outcome: str) -> None:
    place = explained_at(SpeechRow(outcome=outcome))

    assert f'id="{place}"' in page


def test_the_page_of_a_failed_request_leads_to_its_code(
    console: Client, insert: Insert, page: str
) -> None:
    failed = insert(
        "2026-11-05T10:00:00", outcome=Outcome.BACKEND_TIMEOUT, error_code="backend_timeout"
    )
    stopped = insert(
        "2026-11-05T10:00:00", outcome=Outcome.INTERRUPTED, error_code="internal_error"
    )

    for row, place in ((failed, "backend_timeout"), (stopped, "interrupted")):
        shown = console.get(f"/console/requests/{row.request_id}").content.decode()
        assert f'href="{PAGE}#{place}"' in shown
        assert f'id="{place}"' in page
