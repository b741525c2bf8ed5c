"""Prefetched sentences of a clone that is deleted before a slow client reads them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from speech.errors import UnknownVoice
from speech.voices.snapshot import CloneRef, VoiceRef
from tests.speech.synthesis.test_speaking import Echo, voice
from tests.support.speech.sessions import Collaborators, Socket, service, session

CLONE = voice(id="voice_1", clone=CloneRef("voice_1", "organization", None))


class Shelf(Collaborators):
    """One clone, until it is deleted, and a quota that counts."""

    deleted = False
    charged = refunded = 0

    def __init__(self) -> None:
        super().__init__()
        self.engine, self.charged_twice = Echo(), asyncio.Event()

    async def resolve(self, *_: Any) -> VoiceRef:
        if self.deleted:
            raise UnknownVoice
        return CLONE

    def of(self, _: Any) -> Echo:
        return self.engine

    async def charge(self, *_: Any) -> Any:
        self.charged += 1
        if self.charged == 2:
            self.charged_twice.set()
        return SimpleNamespace(refund_characters=self._refund)

    def _refund(self) -> None:
        self.refunded += 1


async def test_prefetched_sentences_of_a_deleted_clone_are_not_sent() -> None:
    shelf = Shelf()
    text = "One sentence is here. Two sentences are here. Three of them are here."
    socket = Socket({"type": "text", "text": text}, {"type": "done"})
    socket.reads.clear()
    _, meter, running = session(service(shelf), socket, voice=CLONE)
    async with asyncio.timeout(60):
        await shelf.charged_twice.wait()
        await socket.is_sent_one.wait()
    shelf.deleted = True
    socket.reads.set()

    assert isinstance(await running, UnknownVoice)
    assert len(socket.frames) == 1
    assert (meter.sentences, meter.characters) == (1, len("One sentence is here. "))
    assert shelf.refunded == shelf.charged - 1
