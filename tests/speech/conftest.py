"""One espeak-ng subprocess for the tests of clones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections

from accounts.keyring import keyring
from speech.database import threads
from tests.speech.espeak_voice import EspeakVoice


@pytest.fixture(scope="session")
def espeak_voice() -> Iterator[EspeakVoice]:
    voice = EspeakVoice()
    yield voice
    voice.close()


@pytest.fixture
def threads_end() -> Iterator[None]:
    """Ends what an asynchronous test had asked the database with, so that it can be dropped."""
    yield
    threads.close()
    keyring.close()
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()
