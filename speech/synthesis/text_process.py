"""The server's side of the text process: long texts are read and prepared beside the event loop.

Each worker of the server has one such process, whose lower priority and own interpreter leave the
event loop to everybody's answers, whatever texts one organization sends. Organizations take turns.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import msgspec

from core.errors import InternalError, ServerOverloaded
from speech.engines import EngineError, EngineFull
from speech.engines.worker_pool import Program, Worker, WorkerPool
from speech.synthesis.script import Script, ScriptReader, Sentence
from speech.synthesis.text_orders import (
    READY_PAYLOAD,
    Fed,
    Feed,
    InvalidTags,
    Load,
    Order,
    Parse,
    Prepare,
    Prepared,
)
from speech.text.language import Language
from speech.text.normalise.locale import Region

log = logging.getLogger(__name__)

_PROGRAM: Final = Program(
    name="text",
    module="speech.synthesis.text_worker",
    arguments=(),
    ready=READY_PAYLOAD,
    start_seconds=10.0,
    most_bytes=1 << 20,
)

AnswerT = TypeVar("AnswerT")

_SCRIPT: Final[msgspec.json.Decoder[Script | InvalidTags]] = msgspec.json.Decoder(
    Script | InvalidTags
)
_FED: Final[msgspec.json.Decoder[Fed | InvalidTags]] = msgspec.json.Decoder(Fed | InvalidTags)
_PREPARED: Final[msgspec.json.Decoder[Prepared | InvalidTags]] = msgspec.json.Decoder(
    Prepared | InvalidTags
)


class _Pool(WorkerPool[Order]):
    name = "text"

    def make_worker(self, directory: Path, number: int) -> Worker:
        return Worker(_PROGRAM)


class TextProcess:
    """Reads and prepares texts in a process, which is started when needed and replaced.

    Every method raises ``ServerOverloaded`` when ``most_waiting`` orders wait or one waited
    ``wait_seconds``, and ``InternalError`` when an order took ``order_seconds`` or its process died
    twice. Belongs to one event loop.
    """

    def __init__(
        self,
        *,
        most_waiting: int = 64,
        wait_seconds: float = 5.0,
        order_seconds: float = 10.0,
    ) -> None:
        self._pool = _Pool(
            size=1,
            most_waiting=most_waiting,
            wait_seconds=wait_seconds,
            order_seconds=order_seconds,
        )
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By organization, as long as one of its texts is read in turn or waits for that.

        A share of the pool's ``FairQueue`` would bound all texts of an organization; these bound
        those of its sessions, before they wait for the pool."""

    async def start(self, *, hindi: bool) -> None:
        """Start the process before the first text, and load the Hindi lexicon if ``hindi``.

        Never raises: the first text starts the process otherwise.
        """
        try:
            await self._pool.run(Load(hindi))
        except EngineError as error:
            log.error("the process for long texts does not start: %s", error)

    async def read_script(self, text: str, organization_id: str) -> Script:
        """``speech.synthesis.script.read_script``. Raises ``TagError`` too."""
        return await self._answer(Parse(text), _SCRIPT, organization_id)

    async def feed(
        self, reader: ScriptReader, text: str, organization_id: str
    ) -> tuple[ScriptReader, list[Sentence]]:
        """``reader.feed(text)``: the reader that follows ``reader``, which stays as it was, and the
        sentences. Raises ``TagError`` too."""
        fed = await self._answer(Feed(reader, text), _FED, organization_id)
        return fed.reader, fed.sentences

    async def feed_in_turn(
        self, reader: ScriptReader, text: str, organization_id: str
    ) -> tuple[ScriptReader, list[Sentence]]:
        """As ``feed``, with one text of an organization at a time; the others wait here, without a
        bound on their number."""
        async with self._turns.setdefault(organization_id, asyncio.Lock()):
            return await self.feed(reader, text, organization_id)

    async def prepare(
        self,
        text: str,
        language: Language,
        region: Region,
        *,
        only_clean: bool,
        organization_id: str,
    ) -> str:
        """``speech.text.preparation.prepared``."""
        order = Prepare(text, language, region, only_clean)
        return (await self._answer(order, _PREPARED, organization_id)).text

    async def _answer(
        self,
        order: Order,
        decoder: msgspec.json.Decoder[AnswerT | InvalidTags],
        organization_id: str,
    ) -> AnswerT:
        try:
            answered = decoder.decode(await self._pool.run(order, organization_id))
        except EngineFull:
            raise ServerOverloaded from None
        except EngineError as error:
            log.error("a long text could not be read: %s", error)
            # Not as the cause, which would be recorded as the failure of a speech engine.
            raise InternalError from None
        if isinstance(answered, InvalidTags):
            raise answered.error()
        return answered

    async def close(self) -> None:
        """Stop the process."""
        await self._pool.close()
