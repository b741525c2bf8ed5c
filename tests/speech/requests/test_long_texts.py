"""Long texts are spoken through the text process, and each has its row, also when that fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from core.errors import ApiError, InternalError, ServerOverloaded
from core.ids import request_id
from speech.audio.encoding import AudioFormat
from speech.engines import Engine, Utterance
from speech.requests.speaking import SpeechCall
from speech.synthesis.script import Script, metered_characters, read_script
from speech.wire import SpeechRequest
from tests.support.builders.quota_service import caller
from tests.support.speech.caller import SpeechAccount, seconds
from tests.support.speech.sessions import VOICE, Collaborators, service

LONG = (
    "# The walk\n\nThe morning train was **late** again, e.g. by 12 minutes. [pause:300ms] "
    "We walked along the river, [sighs] and it cost $3.50.\n"
) * 4
LONG_SENTENCE = "one word after the other, " * 40
FAILURES = [(ServerOverloaded, 503), (InternalError, 500)]


def test_a_long_text_over_http_is_spoken_with_its_row(speech: SpeechAccount) -> None:
    script = read_script(LONG)
    answer = speech.speak(LONG)

    assert answer.status_code == 200
    assert seconds(answer.content) > 10
    row = speech.row(answer.headers["x-request-id"])
    assert (row.outcome, row.http_status) == ("success", 200)
    assert (row.characters, row.sentences) == (script.characters, len(script.sentences))


def test_a_long_text_over_the_websocket_is_spoken_with_its_row(speech: SpeechAccount) -> None:
    script = read_script("And now: " + LONG)
    with speech.session() as session:
        session.text("And now: ")
        session.text(LONG)
        session.done()
        *frames, last = session.rest()

    assert last == {"type": "session.done"}
    assert len(frames) == len(script.sentences)
    row = speech.row_when_written()
    assert (row.outcome, row.http_status, row.close_code) == ("success", 101, None)
    assert row.sentences == len(script.sentences)
    assert row.characters == sum(sentence.characters for sentence in script.sentences)


@pytest.mark.parametrize("text", [LONG + "[pause:9s]", "<!-- hidden -->\n" * 40])
def test_a_long_text_with_wrong_tags_is_refused_by_name(text: str, speech: SpeechAccount) -> None:
    answer = speech.speak(text)

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("'input': The ")
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert speech.rows() == []


class Silent(Engine):
    """An engine that makes no sound."""

    def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        raise AssertionError("nothing is spoken")

    async def close(self) -> None:
        pass


class Texts:
    """A text process that fails to read, or to prepare what it has read."""

    def __init__(self, failure: ApiError, *, reads: bool) -> None:
        self._failure = failure
        self._reads = reads

    async def read_script(self, text: str, organization_id: str) -> Script:
        if not self._reads:
            raise self._failure
        return read_script(text)

    async def prepare(self, *_: Any, **__: Any) -> str:
        raise self._failure


class Reservation(Collaborators):
    """Notes what is refunded; its engine is never asked."""

    refunded: str = ""

    def refund(self) -> None:
        self.refunded = "all"

    def refund_characters(self) -> None:
        self.refunded = "characters"

    def of(self, _: Any) -> Any:
        return Silent()

    def prepare(self, *_: Any) -> None:
        """Prepare the headers of an answer that does not come."""


async def failed(failure: ApiError, *, reads: bool) -> Reservation:
    """What is left of a request whose text process fails with ``failure``."""
    each = Reservation()
    speech = service(each, texts=Texts(failure, reads=reads))
    request = SpeechRequest(voice="ava", input=LONG_SENTENCE, response_format=AudioFormat.PCM)
    characters = metered_characters(LONG_SENTENCE)
    call = SpeechCall(request_id(), 0.0, caller(), request, VOICE, characters)
    with pytest.raises(type(failure)):
        await speech.complete(call, cast(Any, each))
    return each


@pytest.mark.parametrize(("kind", "status"), FAILURES)
async def test_a_text_that_cannot_be_read_is_not_admitted(
    kind: type[ApiError], status: int
) -> None:
    each = await failed(kind(), reads=False)

    assert each.rows == []
    assert each.refunded == "all"


@pytest.mark.parametrize(("kind", "status"), FAILURES)
async def test_a_text_that_cannot_be_prepared_has_its_row_and_costs_nothing(
    kind: type[ApiError], status: int
) -> None:
    each = await failed(kind(), reads=True)

    [row] = each.rows
    assert (row.outcome, row.http_status, row.error_type) == (
        "internal_error",
        status,
        "proxy_error",
    )
    assert (row.characters, row.audio_ms) == (0, 0)
    assert each.refunded == ("all" if kind is ServerOverloaded else "characters")
