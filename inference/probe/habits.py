"""Probes how a server handles connections, and clients that disconnect."""

from __future__ import annotations

import asyncio
from typing import Final

from inference.probe.chat import Model
from inference.probe.client import Closed, NoAnswer
from inference.probe.findings import Found
from inference.wire.dialects import KeepAlive

_SETTLE_SECONDS: Final = 0.3
"""A server that closes a connection because an answer has ended does so within this time."""
_LONG: Final = 2000
_READ: Final = 3
_PROMPT_SECONDS: Final = 5.0


async def keep_alive(model: Model) -> Found[KeepAlive]:
    """Find out which connections can be used for a second request.

    The gateway itself learns that a server closes connections after streams, so only a server that
    closes them after whole answers too, without announcing it, needs the setting.
    """
    ask = model.asked("Say yes.", 1)
    first = await model.client.whole(ask, kept=True)
    after_whole = await _is_kept(model) or await _is_kept(model)
    await asyncio.sleep(_SETTLE_SECONDS)
    try:
        await model.client.stream(ask, kept=True)
    except Closed:
        await model.client.stream(ask, kept=True)
    after_stream = await _is_kept(model)
    if first.said_close:
        return Found(KeepAlive.AUTO, "it closes connections after answers, and says so")
    if not after_whole:
        return Found(KeepAlive.OFF, "it closes connections after whole answers without a word")
    if not after_stream:
        return Found(KeepAlive.AUTO, "kept after whole answers, closed after streams")
    return Found(KeepAlive.AUTO, "kept after whole answers and after streams")


async def _is_kept(model: Model) -> bool:
    """Whether the connection of the last answer can serve another request."""
    await asyncio.sleep(_SETTLE_SECONDS)
    try:
        return (await model.client.whole(model.asked("Say yes.", 1), kept=True)).reused
    except Closed:
        # The client had not yet noticed the close when it sent the request.
        return False


async def abort(model: Model, *, usual: float) -> Found[bool]:
    """Disconnect in the middle of a long stream, and measure when the next request is answered.

    ``usual``: the seconds that an answer of one token usually takes.
    """
    body = model.asked("Count from 1 to 500 in digits, with commas.", _LONG)
    seen = await model.client.stream(body, most_pieces=_READ)
    if not seen.disconnected:
        return Found(None, "the answer had ended before it could be left")
    try:
        whole = await model.client.whole(model.asked("Say yes.", 1))
    except NoAnswer as error:
        return Found(False, f"after a hang-up the next request fails: {error}")
    words = f"after a hang-up the next answer took {whole.seconds:.2f} s"
    if whole.seconds > max(_PROMPT_SECONDS, 5 * usual):
        return Found(False, f"{words}: it seems to work on for nobody")
    return Found(True, words)
