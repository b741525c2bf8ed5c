"""The end of every metered request, on each surface: no row, no answer.

A request is reserved, admitted or refunded, run, recorded, and then finished or failed. Each surface
tells this story in its own function (``ChatService.complete``, ``SpeechService.complete``,
``SpeechStreamConsumer``); the rules about the row that they share stand here.
"""

from __future__ import annotations

from core.asgi.websocket import ReaderStalled
from core.errors import ApiError, ClientDisconnected, InternalError
from core.monitoring import observation
from usage.ledger.ledger import Ledger
from usage.receipts import AnyReceipt, Receipt


async def record(
    ledger: Ledger,
    receipt: AnyReceipt,
    failure: ApiError | None,
    *,
    begun: bool | None = None,
) -> ApiError | None:
    """Store the row of a request that ended with ``failure``; return what the client is sent.

    The answer's last bytes may leave when it returns None. An answer whose row cannot be stored
    anywhere is withheld: ``InternalError``. ``begun`` is that of ``Ledger.record``.
    """
    if (seen := observation.current()) is not None:
        seen.counts = _counts(receipt)
    try:
        await ledger.record(receipt, begun=begun)
    except InternalError as error:
        failure = failure or error
    if failure is not None:
        failure.admitted = True
    return failure


def _counts(receipt: AnyReceipt) -> dict[str, str | int | None]:
    """What an observer of the request is told of its row; tokens as they are billed."""
    if isinstance(receipt, Receipt):
        return {
            "outcome": receipt.outcome,
            "prompt_tokens": receipt.backend_reported_input_tokens,
            "completion_tokens": receipt.backend_reported_output_tokens,
        }
    return {
        "outcome": receipt.outcome,
        "voice": receipt.voice,
        "backend": receipt.engine,
        "characters": receipt.characters,
        "audio_ms": receipt.audio_ms,
        "close_code": receipt.close_code,
    }


def http_status(failure: ApiError | None, sent: int | None) -> int:
    """Return the status for the row of a request whose client was sent the status ``sent``, if any.

    It is 499 for a client that disconnected or stopped reading, and 200 for a complete answer.
    """
    if isinstance(failure, ClientDisconnected | ReaderStalled):
        return ClientDisconnected.status
    return sent or (200 if failure is None else failure.status)
