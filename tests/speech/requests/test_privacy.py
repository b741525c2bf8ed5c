"""Texts that were spoken, reference clips and keys are in no log, no journal and no table."""

from __future__ import annotations

from pathlib import Path

from accounts.models import Scope
from speech.audio.encoding import AudioFormat
from tests.support.privacy import canary, holders, kept
from tests.support.speech.caller import CLIP, SpeechAccount
from tests.support.until import until
from usage.models import Refusal

TEXT, INVALID, UNKNOWN = map(canary, ("text", "invalid", "unknown"))
EXPECTED_REFUSALS = 6
FAULTS = ["status:500", "json", "html", "empty", "reset", "cut:2000", "error_event:1", "garbage"]


def speak_everything(speech: SpeechAccount, remote: dict[str, str]) -> int:
    """Send served, refused and broken requests with a canary in their texts; return how many got a row."""
    for name in AudioFormat:
        answer = speech.speak(f"{TEXT} [pause] {TEXT}.", response_format=name, metadata=TEXT)
        assert answer.status_code == 200
    for fault in FAULTS:
        for voice in remote.values():
            speech.speak(f"[[sim fault:{fault}]] {TEXT}.", voice=voice)
    assert speech.speak(f"{TEXT} " * 15).status_code == 200
    for fields in (
        {"voice": INVALID},
        {"response_format": INVALID},
        {"speed": INVALID},
    ):
        assert 400 <= speech.speak(INVALID, **fields).status_code < 500
    assert speech.post(f'{{"{INVALID}": {INVALID}'.encode()).status_code == 400
    return len(AudioFormat) + len(FAULTS) * len(remote) + 1


def converse(speech: SpeechAccount) -> None:
    """Sessions that end well, are invalid, and are left."""
    with speech.session() as session:
        session.text(f"{TEXT} is spoken.")
        session.done()
        session.rest()
    with speech.session() as session:
        session.send(type=INVALID, text=INVALID)
        session.rest()
    with speech.session() as session:
        session.text(f"{TEXT} is spoken. " * 14)
        session.frame()


def test_no_canary_is_stored_or_logged(
    speech: SpeechAccount, remote: dict[str, str], worker_directory: Path
) -> None:
    rows = speak_everything(speech, remote)
    converse(speech)
    made = speech.create()
    assert made.status_code == 201
    assert speech.create("Berta", audio_b64=f"{INVALID}{CLIP}").status_code == 400
    assert speech.speak(f"{TEXT} in a cloned voice.", voice=made.json()["id"]).status_code == 200
    wrong_scope = speech.mint(Scope.READ)
    for key in (wrong_scope, f"svc_live_{UNKNOWN}", UNKNOWN):
        refused = speech.post({}, headers={"authorization": f"Bearer {key}"})
        assert refused.status_code == 401
    until(lambda: len(speech.rows()) > rows + 2)
    refusals = Refusal.objects.filter(organization_id=speech.organization.pk)
    until(lambda: refusals.count() >= EXPECTED_REFUSALS)

    found = kept(worker_directory)

    for secret in (TEXT, INVALID, UNKNOWN, CLIP[2000:2060], speech.key, wrong_scope):
        assert holders(found, secret) == []
    assert Path("every table") in holders(found, speech.organization.name)
