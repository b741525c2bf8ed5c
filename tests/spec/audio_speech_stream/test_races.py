"""Sessions that are opened at the same moment get no more than the limit."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation

_SESSIONS = 20
_ALLOWED = 2


def test_of_twenty_sessions_at_once_two_are_the_limit_of_a_minute(gateway: Gateway) -> None:
    speech = speech_account(gateway, speech_requests_per_minute=_ALLOWED)
    together = threading.Barrier(_SESSIONS)

    def opened(_: int) -> str:
        with speech.connect() as socket:
            conversation = Conversation(socket)
            together.wait(60)
            conversation.send(type="start", voice="ava")
            return str(conversation.receive()["type"])

    with ThreadPoolExecutor(_SESSIONS) as pool:
        answers = list(pool.map(opened, range(_SESSIONS)))

    assert sorted(answers) == ["error"] * (_SESSIONS - _ALLOWED) + ["ready"] * _ALLOWED
