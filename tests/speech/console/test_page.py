"""The page of voices: its list, the check of what is typed, receipts, and deleting clones."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import Organization, Plan, User
from core.clock import now
from speech.models import Voice, VoiceClone
from tests.support.builders import speech_rows
from tests.support.builders.receipts import speech_receipt
from tests.support.pages.console import text_of, words
from usage.ledger import rows

PATH = "/console/northwind/voices"


@pytest.fixture(autouse=True)
def voices(db: None) -> None:
    for name in ("ava", "leo"):
        speech_rows.voice(name)
    speech_rows.hindi_voice("asha")


def page(console: Client, query: str = "") -> str:
    answer = console.get(f"{PATH}{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def check(console: Client, **fields: Any) -> dict[str, Any]:
    body = {"voice": "ava", "input": "Hello.", **fields}
    answer = console.post(f"{PATH}/check", json.dumps(body), content_type="application/json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def receipt(owner: Organization, **facts: Any) -> str:
    one = speech_receipt(organization_id=str(owner.pk), day=str(now().date()), **facts)
    rows.insert([one])
    return one.request_id


def test_the_list_has_the_voices_of_the_plan_and_own_clones(
    console: Client, organization: Organization, stranger: Organization
) -> None:
    mine = speech_rows.clone(organization, "My voice")
    theirs = speech_rows.clone(stranger, "Their voice")

    said = page(console)

    assert f'data-voice="{mine.pk}"' in said
    assert "Your clones 1 of 10" in words(said)
    assert 'data-voice="ava"' in said
    assert theirs.pk not in said
    assert "Their voice" not in said
    assert "asha" not in said
    organization.plan = Plan.ENTERPRISE
    organization.save()
    assert 'data-voice="asha"' in page(console)


def shown(page: str) -> list[str]:
    """The ids of the voices that a page shows."""
    found = re.findall(r'<li data-voice="([^"]*)"([^>]*)>', page)
    return [name for name, rest in found if "hidden" not in rest.split()]


def test_voices_are_found_by_links_of_their_labels_and_by_words(
    console: Client, organization: Organization
) -> None:
    Voice.objects.filter(pk="ava").update(gender="female", accent="American", style="warm")
    Voice.objects.filter(pk="leo").update(gender="male", accent="American")
    speech_rows.voice("emma", gender="female", accent="British", age="young")
    clone = speech_rows.clone(organization, "Warmhearted")

    assert shown(page(console)) == [clone.pk, "ava", "emma", "leo"]
    of_women = page(console, "?gender=female&voice=leo")
    assert shown(of_women) == ["ava", "emma"]
    assert '<option value="leo" selected>' in of_women, "a voice that is not shown can still speak"
    assert "Accent American 1 British 1 Age young 1 Style warm 1" in words(of_women)
    assert "Gender female 2 male 1" in words(of_women), "the other value is still offered"
    links = dict(re.findall(r'class="chip" href="([^"]*)"[^>]*>(\w+) ', of_women))
    addresses = {text: link.replace("&amp;", "&") for link, text in links.items()}
    assert shown(page(console, addresses["British"])) == ["emma"]
    assert shown(page(console, addresses["female"])) == [clone.pk, "ava", "emma", "leo"], (
        "taken back"
    )
    assert shown(page(console, "?q=WARM")) == [clone.pk, "ava"]
    assert shown(page(console, "?q=warm&gender=female")) == ["ava"]
    nothing = page(console, "?accent=%3Cb%3E&q=%00")
    assert shown(nothing) == []
    assert "0 voices" in words(nothing)
    assert "<b>" not in nothing


def test_a_voice_of_the_address_is_chosen(console: Client, organization: Organization) -> None:
    clone = speech_rows.clone(organization)

    assert '<option value="ava" selected>' in page(console)
    assert f'<option value="{clone.pk}" selected>' in page(console, f"?voice={clone.pk}")
    assert '<option value="ava" selected>' in page(console, "?voice=nothing")


def test_fields_are_offered_where_the_voice_takes_them(console: Client) -> None:
    bare = speech_rows.backend(speed_field="", instructions_field="")
    rich = speech_rows.backend(instructions_field="instructions")
    speech_rows.voice("plain", backend=bare)
    speech_rows.voice("actor", backend=rich)

    lines = {
        name: next(line for line in page(console).splitlines() if f'data-voice="{name}"' in line)
        for name in ("ava", "plain", "actor")
    }

    assert "data-speed" in lines["ava"]
    assert "data-instructions" not in lines["ava"]
    assert "data-speed" not in lines["plain"]
    assert "data-instructions" in lines["actor"]


def test_the_page_says_who_adds_voices_when_clones_are_only_alike_and_when_all_are_made(
    console: Client, organization: Organization
) -> None:
    assert "resembles the speaker only a little" in page(console)
    speech_rows.cloning_backend()
    assert "resembles the speaker only a little" not in page(console)
    for _ in range(10):
        speech_rows.clone(organization)
    said = page(console)
    assert 'id="clone-form"' not in said
    assert "Delete a clone to make another one." in said
    VoiceClone.objects.all().delete()
    Voice.objects.all().delete()
    assert "No voice is served yet" in page(console)


def test_only_this_page_has_sound_and_the_microphone(console: Client) -> None:
    here, elsewhere = console.get(PATH), console.get("/console/northwind/playground")

    assert here["Content-Security-Policy"].endswith("; media-src blob:")
    assert "microphone=(self)" in here["Permissions-Policy"]
    assert "camera=()" in here["Permissions-Policy"]
    assert "media-src" not in elsewhere["Content-Security-Policy"]
    assert "microphone=()" in elsewhere["Permissions-Policy"]
    for path in ("", "models", "usage", "requests", "keys", "keys/new", "password"):
        assert "microphone=()" in console.get(f"/console/{path}")["Permissions-Policy"]
    assert (
        here["Content-Security-Policy"].removesuffix("; media-src blob:")
        == elsewhere["Content-Security-Policy"]
    )


@pytest.mark.parametrize("clones", [0, 10])
def test_the_page_makes_few_queries(
    console: Client, organization: Organization, clones: int, django_assert_max_num_queries: Any
) -> None:
    for number in range(40):
        speech_rows.voice(f"voice-{number}")
    for _ in range(clones):
        speech_rows.clone(organization)
    page(console)  # reads the voices into memory

    with django_assert_max_num_queries(7):
        page(console)


def test_todays_characters_stand_beside_the_quota(
    console: Client, organization: Organization, stranger: Organization
) -> None:
    organization.speech_characters_per_day = 5_000
    organization.save()
    receipt(organization, characters=1_234)
    receipt(stranger, characters=777)

    assert text_of(page(console), "used") == "1,234"
    assert "of 5,000 characters today" in words(page(console))


def test_characters_are_counted_without_tags_and_a_session_takes_more_than_a_request(
    console: Client,
) -> None:
    found = check(console, input="[pause] Hello.[laughs]")
    assert (found["problem"], found["characters"]) == (None, len(" Hello."))

    found = check(console, by_socket=True, input="Hello. " * 1000)
    assert (found["problem"], found["characters"]) == (None, 7000)
    assert found["snippets"]["python"].count('"type": "text"') == 0
    assert found["snippets"]["python"].count("'type': 'text'") == 2


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"input": "  "}, "input", "The text is blank. Send the text to speak."),
        ({"input": "x" * 4097}, "input", "The text has 4097 characters, and at most 4096"),
        ({"input": "[pause:9s] Hello."}, "input", "The pause [pause:9s] is too long"),
        ({"input": "[pause]"}, "input", "no words to speak"),
        ({"speed": 9}, "speed", "The speed must be a number from 0.25 to 4.0."),
        ({"instructions": "x" * 4097}, "instructions", "The instruction text has 4097 characters"),
        ({"response_format": "aac"}, "response_format", "The format must be one of"),
        ({"by_socket": True, "input": "x" * 20_001}, "input", "The text has 20001 characters"),
        ({"voice": " "}, "voice", "The voice is blank"),
        ({"by_socket": True, "speed": 9}, "speed", "The speed must be"),
    ],
)
def test_the_first_wrong_field_is_named_in_the_words_of_the_page(
    console: Client, fields: dict[str, Any], param: str, message: str
) -> None:
    found = check(console, **fields)

    assert found["problem"]["param"] == param
    assert message in found["problem"]["message"]
    assert found["snippets"] == {}


@pytest.mark.parametrize("body", ["", "[1]", "{", '{"voice": NaN}'])
def test_a_body_that_is_no_object_is_a_problem(console: Client, body: str) -> None:
    answer = console.post(f"{PATH}/check", body, content_type="application/json")

    assert answer.json()["problem"]["message"]
    assert answer.json()["snippets"] == {}


def test_the_request_is_shown_as_code(console: Client) -> None:
    whole = check(console, speed=1.5)["snippets"]
    session = check(console, by_socket=True)["snippets"]

    assert set(whole) == {"curl", "python", "javascript"}
    assert "http://testserver:8001/v1/audio/speech" in whole["curl"]
    assert "speed=1.5" in whole["python"]
    assert set(session) == {"python", "javascript"}
    assert "ws://testserver:8001/v1/audio/speech/stream" in session["python"]
    assert "hello.wav" in check(console, response_format=None)["snippets"]["curl"]
    assert "by_socket" not in session["python"] + whole["python"]


def test_a_receipt_is_of_an_own_request_only(
    console: Client, organization: Organization, stranger: Organization
) -> None:
    own = receipt(organization, characters=40, audio_ms=2500, sentences=2)
    foreign = receipt(stranger)

    found = console.get(f"{PATH}/receipts/{own}").json()

    assert (found["characters"], found["audio_ms"], found["sentences"]) == (40, 2500, 2)
    assert found["link"] == f"/console/northwind/requests/{own}"
    assert found["today"] == {"used": 40, "limit": organization.speech_characters_per_day}
    for unknown in (foreign, "req_none", "nothing"):
        assert console.get(f"{PATH}/receipts/{unknown}").status_code == 404


def test_a_clone_is_deleted_after_a_question(console: Client, organization: Organization) -> None:
    clone = speech_rows.clone(organization, "My voice")

    asked = console.get(f"{PATH}/{clone.pk}/delete")
    assert "Delete My voice" in words(asked.content.decode())
    assert VoiceClone.objects.get(pk=clone.pk).deleted_at is None
    answer = console.post(f"{PATH}/{clone.pk}/delete", follow=True)

    assert "The clone My voice is deleted." in words(answer.content.decode())
    assert VoiceClone.objects.get(pk=clone.pk).deleted_at is not None
    assert console.get(f"{PATH}/{clone.pk}/delete").status_code == 404


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_foreign_clone_and_a_voice_of_the_catalog_are_not_there_to_delete(
    console: Client, stranger: Organization, method: str
) -> None:
    foreign = speech_rows.clone(stranger)

    for voice in (foreign.pk, "ava", "voice_" + "0" * 32):
        answer = getattr(console, method)(f"{PATH}/{voice}/delete")
        assert answer.status_code == 404
    assert VoiceClone.objects.get(pk=foreign.pk).deleted_at is None


def test_changes_need_the_token_of_the_page(person: User, organization: Organization) -> None:
    clone = speech_rows.clone(organization)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person)

    for path in (f"{PATH}/{clone.pk}/delete", f"{PATH}/check"):
        assert strict.post(path, "{}", content_type="application/json").status_code == 403
    assert VoiceClone.objects.get(pk=clone.pk).deleted_at is None


def test_nobody_sees_voices_without_a_session(client: Client, organization: Organization) -> None:
    clone = speech_rows.clone(organization)

    for path in (PATH, f"{PATH}/{clone.pk}/delete", f"{PATH}/receipts/req_none"):
        answer = client.get(path)
        assert answer.status_code == 302
        assert "/console/login" in answer["Location"]
