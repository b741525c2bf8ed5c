"""One espeak-ng subprocess for the tests of clones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.speech.espeak_voice import EspeakVoice


@pytest.fixture(scope="session")
def espeak_voice() -> Iterator[EspeakVoice]:
    voice = EspeakVoice()
    yield voice
    voice.close()
