"""``stream_format: "sse"``: the same sound in server-sent events, and the same metering."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any

import httpx2
import pytest

from speech.audio.pcm import SAMPLE_RATE
from tests.support.speech.caller import SENTENCE, TWO_SENTENCES, SpeechAccount, decoded
from tests.support.speech.speech_server import described, heard, said, speaking
from tests.support.until import until

FORMATS = ["wav", "mp3", "pcm", "opus", "flac"]


def read_events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line:
            assert line.startswith("data: "), line
            yield json.loads(line.removeprefix("data: "))


def events_of(answer: httpx2.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-length" not in answer.headers
    return list(read_events(answer.text.split("\n")))


def sound_of(events: list[dict[str, Any]]) -> bytes:
    return b"".join(b64decode(event["audio"], validate=True) for event in events)


@pytest.mark.parametrize("name", FORMATS)
def test_the_sound_comes_in_events_and_the_usage_last(speech: SpeechAccount, name: str) -> None:
    answer = speech.speak(TWO_SENTENCES, response_format=name, stream_format="sse")

    *deltas, done = events_of(answer)
    row = speech.row(answer.headers["x-request-id"])
    assert {event["type"] for event in deltas} == {"speech.audio.delta"}
    assert all(event["audio"] for event in deltas)
    assert done == {
        "type": "speech.audio.done",
        "usage": {
            "input_tokens": row.characters,
            "output_tokens": 0,
            "total_tokens": row.characters,
        },
    }
    assert row.characters == len(TWO_SENTENCES)
    assert (row.outcome, row.http_status, row.response_format) == ("success", 200, name)
    content = sound_of(deltas)
    pcm = content if name == "pcm" else decoded(content)[0]
    assert row.audio_ms == round(len(pcm) / 2 / SAMPLE_RATE * 1000)
    assert 0 <= int(answer.headers["x-upstream-ms"]) <= int(answer.headers["x-gateway-ms"])


def test_pcm_events_come_while_the_rest_is_spoken(
    speech: SpeechAccount, remote: dict[str, str]
) -> None:
    text = "The first sentence. [[sim first:0.6]] The second one takes its time."
    with speech.streaming(text, remote["pcm"], stream_format="sse") as answer:
        events = read_events(answer.iter_lines())
        assert next(events)["type"] == "speech.audio.delta"
        request_id = answer.headers["x-request-id"]
        assert [row.request_id for row in speech.rows()] == [], "it has ended already"
        *_, done = events

    assert done["type"] == "speech.audio.done"
    assert speech.row(request_id).outcome == "success"


def test_a_failure_after_the_first_event_is_the_last_one(
    speech: SpeechAccount, remote: dict[str, str]
) -> None:
    text = "One is fine. [[sim fault:status@500]] Two is not."

    answer = speech.speak(text, remote["pcm"], response_format="pcm", stream_format="sse")

    *deltas, last = events_of(answer)
    assert sound_of(deltas)
    assert last["type"] == "error"
    assert last["error"]["type"] == "proxy_error"
    [row] = until(speech.rows)
    assert (row.outcome, row.http_status, row.error_type) == ("backend_error", 200, "proxy_error")


async def test_one_gateway_can_stand_behind_another(speech: SpeechAccount) -> None:
    backend = described(speech.url, "sse", api_key=speech.key)
    async with speaking(backend) as engine:
        pcm = await heard(engine, said(SENTENCE, rate=2.0))

    assert len(pcm) / 2 / SAMPLE_RATE == pytest.approx(1.0, abs=0.5)
