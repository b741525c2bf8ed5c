"""What honest clients see through an nginx whose ``location`` has only ``proxy_pass``.

It speaks HTTP/1.0 with the gateway, and sends a body on as fast as it can read its file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from tests.support.servers.nginx import running_nginx
from tests.support.speech.caller import SpeechAccount

HTTP = """
  server {
    listen 127.0.0.1:PORT; client_max_body_size 50m;
    location / { proxy_pass http://127.0.0.1:BEHIND; }
  }
"""


@pytest.fixture
def through_nginx(speech: SpeechAccount, tmp_path: Path) -> Iterator[SpeechAccount]:
    """An account whose requests come through nginx."""
    behind = str(speech.gateway.speech_port)
    with running_nginx(tmp_path, HTTP.replace("BEHIND", behind)) as port:
        yield replace(speech, gateway=replace(speech.gateway, speech_port=port))


def test_sound_that_breaks_off_is_not_taken_for_whole(
    through_nginx: SpeechAccount, remote: dict[str, str]
) -> None:
    text = "One is fine. [[sim fault:status@500]] Two is not."
    with pytest.raises(httpx2.RemoteProtocolError):
        through_nginx.speak(text, voice=remote["pcm"], response_format="pcm")

    assert through_nginx.row_when_written().outcome == "backend_error"


def test_whole_sound_arrives_whole(through_nginx: SpeechAccount, remote: dict[str, str]) -> None:
    answer = through_nginx.speak("One is fine.", voice=remote["pcm"], response_format="pcm")

    assert answer.status_code == 200
    assert len(answer.content) > 10_000
    assert through_nginx.row_when_written().outcome == "success"


def test_a_refusal_reaches_who_sends_a_large_body(through_nginx: SpeechAccount) -> None:
    large = b"{" + b" " * (8 << 20)
    seen = Counter(
        through_nginx.post(large, headers=headers).status_code
        for headers in [{"authorization": "Bearer unknown"}, {}] * 15
    )

    assert seen == {401: 15, 413: 15}
