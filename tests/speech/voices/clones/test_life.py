"""A clone from its creation to its deletion, through the API."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from accounts.models import Plan
from speech.models import CloneMode, SpeechBackend
from tests.support.builders import clips
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount, decoded
from tests.support.speech.errors import kind_of
from tests.support.speech.listening import loudness, median_pitch, sentence_heard
from tests.support.speech.speech_server import SpeechServer
from tests.support.texts.sentences import SENTENCES
from tests.support.until import until

REFERENCE = "The morning train was late again, so we walked along the river and talked a while."


def cloned(speech: SpeechAccount, wav: bytes | None = None) -> str:
    """Clone the speaker in ``wav``; return the clone's id."""
    fields = {} if wav is None else {"audio_b64": base64.b64encode(wav).decode()}
    answer = speech.create(**fields)
    assert answer.status_code == 201, answer.text
    identifier: str = answer.json()["id"]
    return identifier


def test_a_clone_speaks_with_its_speakers_pitch_and_is_understood(speech: SpeechAccount) -> None:
    reference = speech.speak(REFERENCE, voice="leo").content
    clone = cloned(speech, reference)

    pitch = median_pitch(decoded(speech.speak(REFERENCE, voice=clone).content)[0])
    understood = [
        sentence_heard(decoded(speech.speak(text, voice=clone).content)[0], SENTENCES) == text
        for text in SENTENCES[:4]
    ]

    assert pitch == pytest.approx(median_pitch(decoded(reference)[0]), rel=0.05)
    assert sum(understood) >= 3


def test_a_clone_deleted_over_http_stops_working_everywhere_at_once(speech: SpeechAccount) -> None:
    clone = cloned(speech)
    with speech.session(voice=clone) as session:
        session.text("The clone speaks. Then ")
        assert loudness(decoded(session.frame())[0]) > 0.01

        assert speech.delete(clone).status_code == 200
        session.text("it does not. More text ")
        refused = session.receive()
        code = session.close_code

    assert (refused["type"], refused["error"]["type"], code) == ("error", "proxy_error", 4404)
    assert kind_of(speech.speak(voice=clone)) == (400, "proxy_error")
    assert clone not in speech.voices()
    row = speech.row_when_written()
    assert (row.cloned, row.sentences) == (True, 1)
    assert (row.outcome, row.http_status, row.close_code) == ("client_error", 101, 4404)


@pytest.fixture(params=[CloneMode.INLINE, CloneMode.UPLOAD])
def neural(
    request: pytest.FixtureRequest, gateway: Gateway, speech_server: SpeechServer
) -> Iterator[SpeechBackend]:
    """A backend that speaks every clone of the live gateway during a test."""
    speech_server.clear_requests()
    backend = SpeechBackend.objects.create(
        name=f"neural {request.param} {gateway.organization.pk}",
        base_url=f"{speech_server.url}/v1",
        model="simulated",
        clone_mode=request.param,
        clone_field="audio_sample" if request.param == CloneMode.UPLOAD else "ref_audio",
        upload_extra_fields={"consent": "true"} if request.param == CloneMode.UPLOAD else {},
        serves_clones=True,
    )
    yield backend
    backend.enabled = backend.serves_clones = False
    backend.save()


def spoken_by(server: SpeechServer, speech: SpeechAccount, clone: str) -> bool:
    """Whether the speech server got a request when ``clone`` speaks."""
    server.clear_requests()
    assert speech.speak("Good morning to you.", voice=clone).status_code == 200
    return bool(server.requests_with("Good morning"))


def test_a_speech_server_gets_the_clip_and_deletes_it_with_the_clone(
    gateway: Gateway, speech_server: SpeechServer, neural: SpeechBackend
) -> None:
    speech = speech_account(gateway, Plan.STANDARD)
    clone = cloned(speech, clips.wav(clips.voice(4.0)))
    # The gateway reads the new backend when it next checks the change stamps.
    until(lambda: spoken_by(speech_server, speech, clone))

    asked = speech_server.requests_with("Good morning")[-1]["body"]

    assert clone not in str(asked)
    row = speech.rows()[-1]
    assert (row.engine, row.cloned, row.outcome) == (neural.name, True, "success")
    if neural.clone_mode == CloneMode.INLINE:
        assert asked["ref_audio"]
        speech.delete(clone)
    else:
        speech.delete(clone)
        deleted = until(lambda: speech_server.requests("deletion"))
        assert [entry["voice"] for entry in deleted] == [asked["voice"]]
    assert kind_of(speech.speak(voice=clone)) == (400, "proxy_error")
