"""The console's page of pronunciations, which needs no script."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import AuditEntry, Organization
from speech.models import WordPronunciation
from speech.text.pronunciations import Alphabet, Pronunciation
from speech.voices.pronunciations import rows
from tests.support.builders import speech_rows
from tests.support.pages.console import words

PATH = "/console/voices/pronunciations"


@pytest.fixture(autouse=True)
def voice(db: None) -> None:
    speech_rows.voice("ava")


def page(console: Client) -> str:
    answer = console.get(PATH)
    assert answer.status_code == 200
    return words(answer.content.decode())


def test_one_is_added_shown_and_deleted(
    console: Client, organization: Organization, stranger: Organization
) -> None:
    rows.put(Pronunciation("theirs", "not mine"), str(stranger.pk))
    assert "No pronunciation yet" in page(console)

    typed = {"word": "IT", "pronunciation": "eye tee", "language": "en", "case_sensitive": "on"}
    said = words(console.post(PATH, typed, follow=True).content.decode())

    assert "The pronunciation of IT is added." in said
    assert "IT these capitals eye tee all, English" in said
    assert "1 of 500" in said
    assert "theirs" not in said
    row = WordPronunciation.objects.get(organization=organization)
    answer = console.post(f"{PATH}/{row.pk}/delete", follow=True)
    assert "The pronunciation of IT is deleted." in words(answer.content.decode())
    entries = AuditEntry.objects.filter(subject_id=row.pk).order_by("pk")
    assert [(each.verb, each.source, each.actor) for each in entries] == [
        (verb, "console", "ada@northwind.example") for verb in ("created", "deleted")
    ]


def test_what_is_wrong_is_said_beside_what_was_typed(console: Client) -> None:
    answer = console.post(PATH, {"word": "nginx", "pronunciation": "  ", "alphabet": ""})

    assert answer.status_code == 400
    assert 'value="nginx"' in answer.content.decode()
    assert "The pronunciation has no letter or digit." in words(answer.content.decode())
    ipa = {"word": "nginx", "pronunciation": "ɛn~", "alphabet": Alphabet.IPA.value}
    assert "is no symbol of the IPA" in words(console.post(PATH, ipa).content.decode())


def test_those_of_others_cannot_be_deleted(console: Client, stranger: Organization) -> None:
    row, _ = rows.put(Pronunciation("theirs", "not mine"), str(stranger.pk))

    assert console.post(f"{PATH}/{row.pk}/delete").status_code == 404
    assert WordPronunciation.objects.filter(pk=row.pk).exists()
