"""Rewrites a whole answer of a backend in the form of the contract."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from core.errors import BackendError, BackendProtocolError
from inference.chat.meter import Meter
from inference.chat.relays import call_id, completion_id, finish_reason
from inference.wire.answers import (
    Choice,
    ChoiceObject,
    CompletionObject,
    MessageObject,
    decode_completion,
    encode,
)
from inference.wire.dialects import is_flat_error

LARGEST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of a whole answer, which is held in memory."""


class WholeRelay:
    """Relays one JSON body; made when the head of the answer has arrived (``relays.Relay``)."""

    __slots__ = (
        "_completion",
        "_created",
        "_meter",
        "_parts",
        "_size",
        "done",
        "finished",
        "unsent",
    )
    is_all_reported: Final = False

    def __init__(self, meter: Meter, created: int) -> None:
        self._meter = meter
        self._created = created
        self._parts: list[bytes] = []
        self._size = 0
        self._completion: CompletionObject | None = None
        self.done = False
        self.finished = False
        self.unsent = b""
        meter.mark_first_token()

    def feed(self, read: bytes) -> bytes:
        if read:
            self._size += len(read)
            if self._size > LARGEST_ANSWER:
                raise BackendProtocolError("The model server's answer is too large.")
            self._parts.append(read)
        else:
            self._completion = completion_of(b"".join(self._parts), self._meter, self._created)
            self.done = self.finished = True
        return b""

    def last(self) -> bytes:
        if self._completion is None:
            return b""
        self._completion.usage = self._meter.client_usage()
        return encode(self._completion)


def completion_of(body: bytes, meter: Meter, created: int) -> CompletionObject:
    """Parse, meter and rebuild a whole answer; ``usage`` is that of the meter at this moment.

    Raises ``BackendError`` for an error object sent with status 200, ``BackendProtocolError`` for
    anything else that is not an answer.
    """
    try:
        completion = decode_completion(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BackendProtocolError().because("its answer is no completion") from None
    if completion.error is not None:
        raise BackendError().because("answers 200 with an error")
    if completion.usage is not None:
        meter.take_usage(completion.usage)
    if not completion.choices:
        if is_flat_error(body):
            raise BackendError().because("answers 200 with an error")
        raise BackendProtocolError("The model server sent an answer without a choice.")
    if completion.system_fingerprint is not None:
        meter.take_fingerprint(completion.system_fingerprint)
    identity = meter.identity
    return CompletionObject(
        id=completion_id(identity.request_id),
        created=created,
        model=identity.model_identifier,
        choices=[_choice_object(completion.choices[0], meter)],
        usage=meter.client_usage(),
        request_id=identity.request_id,
        system_fingerprint=meter.fingerprint or UNSET,
        service_tier=completion.service_tier or UNSET,
    )


def _choice_object(choice: Choice, meter: Meter) -> ChoiceObject:
    if not choice.finish_reason:
        raise BackendProtocolError("The model server sent an answer without a finish reason.")
    message = choice.message
    reasoning = message.reasoning_content or message.reasoning
    edited = MessageObject(role="assistant", content=message.content, refusal=message.refusal)
    if reasoning:
        edited.reasoning_content = reasoning
    texts = [message.content, reasoning, message.refusal]
    if message.tool_calls:
        edited.tool_calls = message.tool_calls
        edited.content = message.content or None
        for index, call in enumerate(message.tool_calls):
            call.type = "function"
            call.id = call.id or call_id(meter, index)
            texts += (call.function.name, call.function.arguments)
    for text in texts:
        if text:
            meter.take_text(text)
    return ChoiceObject(
        index=0,
        message=edited,
        logprobs=choice.logprobs,
        finish_reason=finish_reason(choice.finish_reason),
    )
