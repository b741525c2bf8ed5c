"""The rounds notice answers that went to somebody else: a gateway that never errs cannot show it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from tests.resilience.proxies.attacks import Keys
from tests.resilience.proxies.fronts import FRONTS
from tests.resilience.proxies.rounds import Rounds, Tally
from tests.support.until import until_async

KEYS = Keys(inference="attacker", speech="attacker-speech")
ROUNDS = range(5)


class Server:
    """Closes the connection at every request, or answers it with the text of the chat before it."""

    def __init__(self, *, answers: bool) -> None:
        self._answers = answers
        self._before = "nothing"
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        with suppress(OSError, EOFError):
            while await self._answer(reader, writer):
                pass
        writer.transport.abort()
        await asyncio.sleep(0)  # the loop closes the socket in its next turn
        self._open -= 1

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        if not self._answers:
            return False
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        asked = await reader.readexactly(int(length or 0))
        body = json.dumps({"choices": [{"message": {"content": self._before}}]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        if b"say: " in asked:
            self._before = json.loads(asked)["messages"][0]["content"].removeprefix("say: ")
        return True

    async def play(self) -> Tally:
        async with await asyncio.start_server(self.serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            tally = await Rounds(FRONTS[0], port, KEYS, "victim").play(ROUNDS)
            await until_async(lambda: self._open == 0)
        return tally


async def test_answers_to_somebody_else_are_noticed() -> None:
    tally = await Server(answers=True).play()

    assert tally.victim_misled == len(ROUNDS)
    assert tally.attacker_read > 2
    assert tally.victim_ids == []


async def test_requests_without_an_answer_are_noticed() -> None:
    tally = await Server(answers=False).play()

    assert tally.victim_misled == len(ROUNDS)
    assert tally.attacker_read == 0
    assert len(tally.wrong) >= 2 * len(ROUNDS)
