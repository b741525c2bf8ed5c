"""Voices, speech backends and clones in the admin, as an operator clicks through them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEntry, User
from core import clock
from core.admin.columns import NOTHING
from speech.models import CloneAudio, CloneUpload, SpeechBackend, Voice, VoiceClone
from speech.voices.clones.clips import cipher
from tests.support.builders import speech_rows
from tests.support.pages.admin_forms import logged_in, text_of
from tests.support.pages.admin_forms import operator as operator_with

pytestmark = pytest.mark.django_db

VOICES, BACKENDS = "/admin/speech/voice/", "/admin/speech/speechbackend/"
CLONES, UPLOADS = "/admin/speech/voiceclone/", "/admin/speech/cloneupload/"


@pytest.fixture
def operator() -> Client:
    return logged_in(User.objects.create_superuser("op@example.com", "correct horse battery"))


def voice_form(**changes: Any) -> dict[str, Any]:
    columns = {
        "id": "ava",
        "language": "en",
        "embedded_engine": "espeak",
        "engine_voice": "en-us+f3",
        "enabled": "on",
        "servers-TOTAL_FORMS": 0,
        "servers-INITIAL_FORMS": 0,
    }
    return {**columns, **changes}


def backend_form(**changes: Any) -> dict[str, Any]:
    row = SpeechBackend(name="kokoro", base_url="http://127.0.0.1:9100/v1", model="kokoro")
    columns = {
        field.name: getattr(row, field.name)
        for field in SpeechBackend._meta.fields
        if field.editable and getattr(row, field.name) not in (None, False)
    }
    jsons = {"extra_fields": "{}", "sounds": "{}", "upload_extra_fields": "{}"}
    return {**columns, **jsons, **changes}


def test_a_voice_is_added_and_shown(operator: Client) -> None:
    answer = operator.post(f"{VOICES}add/", voice_form(), follow=True)

    shown = text_of(answer)
    assert "was added successfully" in shown
    assert "en-us+f3" in shown
    assert "every account" in shown
    assert Voice.objects.get().backend is None


def test_a_voice_gets_a_further_server(operator: Client) -> None:
    first, spare = speech_rows.backend("first"), speech_rows.backend("spare")
    other = speech_rows.backend("other", normalizes_text=True)

    def post(**further: Any) -> Any:
        row = {"servers-TOTAL_FORMS": 1, "servers-0-weight": 50, **further}
        return operator.post(f"{VOICES}add/", voice_form(backend=first.pk, **row), follow=True)

    wrong = text_of(post(**{"servers-0-backend": other.pk}))
    assert "Its normalizes_text must be that of first" in wrong
    assert "was added successfully" in text_of(post(**{"servers-0-backend": spare.pk}))

    assert "first, spare" in text_of(operator.get(VOICES))
    first.enabled = False
    first.save()
    assert "every account" in text_of(operator.get(VOICES))
    entries = AuditEntry.objects.filter(kind="further server of a voice")
    assert [(entry.verb, entry.subject) for entry in entries] == [("created", "ava on spare")]
    answer = text_of(operator.post(f"{BACKENDS}{spare.pk}/delete/", {"post": "yes"}))
    assert SpeechBackend.objects.filter(pk=spare.pk).exists(), answer


def test_the_list_shows_which_voices_are_served(operator: Client) -> None:
    speech_rows.hindi_voice("asha")
    speech_rows.voice("off", enabled=False)
    dead = speech_rows.backend("dead", enabled=False)
    speech_rows.voice("mute", backend=dead, engine_voice="x")

    shown = text_of(operator.get(VOICES))

    assert "enterprise accounts" in shown
    assert "no account: disabled" in shown
    assert "no account: dead is disabled" in shown


def test_voices_without_a_label_are_found_by_a_link_with_a_name(operator: Client) -> None:
    speech_rows.voice("ava", style="warm")
    speech_rows.voice("leo")

    page = operator.get(VOICES).content.decode()

    assert re.search(rf'<a href="\?style=">\s*{NOTHING}\s*</a>', page)
    assert "leo" in (found := text_of(operator.get(f"{VOICES}?style=")))
    assert "ava" not in found


def test_the_id_of_a_voice_is_not_changed(operator: Client) -> None:
    speech_rows.voice("ava")

    operator.post(f"{VOICES}ava/change/", voice_form(id="eva", engine_voice="en-us+f4"))

    assert list(Voice.objects.values_list("id", "engine_voice")) == [("ava", "en-us+f4")]


def test_a_backend_is_added_and_its_key_shown_by_name(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_SPEECH", "the-secret-itself")
    answer = operator.post(
        f"{BACKENDS}add/",
        backend_form(api_key_env="SVC_BACKEND_KEY_SPEECH", sounds='{"laughs": "<laugh>"}'),
        follow=True,
    )
    assert "was added successfully" in text_of(answer)
    row = SpeechBackend.objects.get()
    assert row.sounds == {"laughs": "<laugh>"}

    page = operator.get(f"{BACKENDS}{row.pk}/change/").content.decode()

    assert "SVC_BACKEND_KEY_SPEECH" in page
    assert "the-secret-itself" not in page


@pytest.mark.parametrize(
    ("path", "changes", "told"),
    [
        (VOICES, {"language": "hi"}, "en-us+f3 speaks en, not hi."),
        (BACKENDS, {"api_key_env": "sk-123-456"}, "Give the name of a variable, not a key."),
        (BACKENDS, {"sounds": '{"laughs": 1}'}, "Give the spelling of laughs as text."),
        (BACKENDS, {"extra_fields": "[1]"}, "Give a JSON object"),
        (BACKENDS, {"extra_fields": "{"}, "Enter a valid JSON."),
    ],
)
def test_an_invalid_form_is_refused_with_a_message(
    operator: Client, path: str, changes: dict[str, str], told: str
) -> None:
    form = voice_form if path == VOICES else backend_form
    assert told in text_of(operator.post(f"{path}add/", form(**changes)))
    assert not Voice.objects.exists()
    assert not SpeechBackend.objects.exists()


def test_the_list_of_backends_names_problems(operator: Client) -> None:
    speech_rows.backend("idle", api_key_env="SVC_BACKEND_KEY_UNSET", enabled=False)

    shown = text_of(operator.get(BACKENDS))

    assert "It is switched off." in shown
    assert "No voice uses it, and it serves no clones." in shown
    assert "The variable SVC_BACKEND_KEY_UNSET is not set in this process." in shown


@pytest.mark.parametrize("by", ["page", "action"])
def test_a_copy_is_deleted_only_once_its_backend_is_switched_off_and_with_an_entry(
    operator: Client, by: str
) -> None:
    """The gateway forgets a copy so, and the speech server keeps the voice if it still runs."""
    backend = speech_rows.cloning_backend()
    clone = speech_rows.clone(speech_rows.organization())
    copy = CloneUpload.objects.create(clone=clone, backend=backend, upstream_name="random")

    def delete() -> int:
        if by == "page":
            return operator.post(f"{UPLOADS}{copy.pk}/delete/", {"post": "yes"}).status_code
        chosen = {"action": "delete_selected", "_selected_action": [copy.pk], "post": "yes"}
        return operator.post(UPLOADS, chosen).status_code

    assert delete() == 403
    assert CloneUpload.objects.exists()
    operator.post(f"{BACKENDS}{backend.pk}/delete/", {"post": "yes"})
    assert SpeechBackend.objects.exists(), "it holds the copy"
    assert not AuditEntry.objects.filter(kind="upstream copy of a clone").exists()

    SpeechBackend.objects.update(enabled=False)

    assert delete() == 302
    assert not CloneUpload.objects.exists()
    entry = AuditEntry.objects.get(kind="upstream copy of a clone")
    assert (entry.verb, entry.subject, entry.source) == ("deleted", "random", "admin")
    assert entry.changes == {"clone": [clone.pk, None], "backend": [backend.name, None]}
    assert entry.organization_id == clone.organization_id


def clone_with_clip() -> VoiceClone:
    clone = speech_rows.clone(speech_rows.organization(), "Anna")
    CloneAudio.objects.create(clone=clone, sealed=cipher().seal(b"the clip"))
    return clone


def test_a_clone_is_shown_and_neither_played_nor_edited(operator: Client) -> None:
    clone = clone_with_clip()
    assert 'alt="False"' in operator.get(CLONES).content.decode()
    clone.profile["neural"] = {}
    clone.save()
    assert 'alt="False"' not in operator.get(CLONES).content.decode()

    page = operator.get(f"{CLONES}{clone.pk}/change/")

    shown = text_of(page)
    assert clone.pk in shown
    assert "Anna" in shown
    content = page.content.decode()
    assert "<audio" not in content
    assert "gAAAA" not in content, "a sealed clip begins so"
    assert 'name="_save"' not in content
    assert operator.get(f"{CLONES}add/").status_code == 403
    assert operator.post(f"{CLONES}{clone.pk}/delete/", {"post": "yes"}).status_code == 403


def test_an_operator_deletes_a_clone_as_its_owner_would(operator: Client) -> None:
    clone = clone_with_clip()
    upload = CloneUpload.objects.create(
        clone=clone, backend=speech_rows.cloning_backend(), upstream_name="random"
    )
    form = {"action": "delete_clones", "_selected_action": [clone.pk]}

    shown = text_of(operator.post(CLONES, form, follow=True))
    again = text_of(operator.post(CLONES, form, follow=True))

    assert "1 voice clones deleted" in shown
    assert "0 voice clones deleted" in again
    clone.refresh_from_db()
    assert clone.deleted_at is not None
    assert (clone.slot, clone.profile) == (None, {})
    assert not CloneAudio.objects.exists()
    upload.refresh_from_db()
    assert upload.delete_after is not None
    entry = AuditEntry.objects.get(kind="voice clone")
    assert (entry.verb, entry.subject_id, entry.source) == ("deleted", clone.pk, "admin")
    assert entry.organization_id == clone.organization_id


def test_a_changed_voice_and_backend_have_entries(operator: Client) -> None:
    backend = speech_rows.cloning_backend()
    voice = Voice.objects.create(id="ava", backend=backend, engine_voice="af_heart")

    voice.engine_voice = "af_sky"
    voice.save()
    backend.base_url = "http://127.0.0.2:9100/v1"
    backend.save()

    changes = AuditEntry.objects.filter(verb="changed").values_list("kind", "changes")
    assert dict(changes) == {
        "voice": {"engine_voice": ["af_heart", "af_sky"]},
        "speech backend": {"base_url": ["http://127.0.0.1:9100/v1", "http://127.0.0.2:9100/v1"]},
    }


def test_staff_without_the_permission_cannot_delete_clones() -> None:
    clone = clone_with_clip()
    client = logged_in(operator_with())

    client.post(CLONES, {"action": "delete_clones", "_selected_action": [clone.pk]})

    clone.refresh_from_db()
    assert clone.deleted_at is None


@pytest.mark.parametrize(
    ("page", "names"),
    [
        (f"{CLONES}?state=existing", ["kept"]),
        (f"{CLONES}?state=deleted", ["fresh", "late"]),
        (f"{UPLOADS}?deletion=due", ["fresh", "late"]),
        (f"{UPLOADS}?deletion=overdue", ["late"]),
    ],
)
def test_tombstones_and_copies_that_are_overdue_are_found(
    operator: Client, page: str, names: list[str]
) -> None:
    owner, backend = speech_rows.organization(), speech_rows.cloning_backend()
    long_ago = clock.now() - timedelta(hours=1)
    for name, deleted_at in (("kept", None), ("fresh", clock.now()), ("late", long_ago)):
        slot: dict[str, Any] = {"slot": None} if deleted_at else {}
        CloneUpload.objects.create(
            clone=speech_rows.clone(owner, f"clone-{name}", deleted_at=deleted_at, **slot),
            backend=backend,
            upstream_name=f"copy-{name}",
            delete_after=deleted_at,
        )

    shown = text_of(operator.get(page))

    what = "clone" if page.startswith(CLONES) else "copy"
    assert [name for name in ("kept", "fresh", "late") if f"{what}-{name}" in shown] == names
