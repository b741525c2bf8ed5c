"""From a backend's answer to the client's: the same story told in the contract's words.

One id, one creation time and the published model name on everything; one role; tool calls with
dense indexes whose id and name appear once; running usage taken out; unknown members dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from inference.answers import (
    FAILED_REASONS,
    FINISH_ALIASES,
    FINISH_REASONS,
    Choice,
    ChoiceDelta,
    ChoiceObject,
    Chunk,
    ChunkHead,
    CompletionObject,
    Delta,
    FunctionFragment,
    MessageObject,
    TimedChunk,
    ToolCallFragment,
    UsageChunk,
    decode_chunk,
    decode_completion,
    decode_timed_chunk,
    encode,
)
from inference.dialects import RunningUsage
from inference.mending import is_flat_error
from inference.metering import Meter
from svc_project.lib.errors import ApiError, BackendError, BackendProtocolError
from svc_project.lib.sse import DONE, DONE_FRAME, escape_line_breaks, frame


def finish_reason(reason: str) -> str:
    """``reason`` as the convention spells it.

    Raises ``BackendError`` when it says that the backend gave up, ``BackendProtocolError`` when
    nothing is known of it.
    """
    if reason in FINISH_REASONS:
        return reason
    if reason in FAILED_REASONS:
        raise BackendError
    if (known := FINISH_ALIASES.get(reason)) is None:
        raise BackendProtocolError("The model server ended its answer for an unknown reason.")
    return known


class StreamRelay:
    """Turns the events of a streamed answer into the client's frames, and feeds the meter.

    ``finished``: a finish reason was relayed; ``done``: the backend said ``[DONE]``; ``unsent``:
    the frames made before ``take`` raised.
    """

    def __init__(
        self, meter: Meter, created: int, running_usage: RunningUsage = RunningUsage.NONE
    ) -> None:
        timed = running_usage is RunningUsage.LLAMA_CPP
        self._decode: Callable[[bytes], Chunk] = decode_timed_chunk if timed else decode_chunk
        self._meter = meter
        self._created = created
        self._head = b""
        self._first_head = b""
        self._service_tier: str | None = None
        self._role_sent = False
        self._may_call = meter.identity.shape == "tools"
        self._calls: dict[int, int] = {}
        self._call_ids: dict[str, int] = {}
        self.finished = False
        self.done = False
        self.unsent = b""

    def take(self, events: Sequence[bytes]) -> bytes:
        """The client's bytes for ``events``, in one piece; empty when none of them is shown.

        Raises ``BackendProtocolError`` for an event that is not a chunk or carries impossible
        figures, ``BackendError`` for one that reports a failure.
        """
        out: list[bytes] = []
        try:
            for event in events:
                if event == DONE:
                    self.done = True
                    break
                self._take_event(event, out)
        except ApiError:
            self.unsent = escape_line_breaks(b"".join(out))
            raise
        return escape_line_breaks(b"".join(out)) if out else b""

    def _take_event(self, event: bytes, out: list[bytes]) -> None:
        try:
            chunk = self._decode(event)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise BackendProtocolError from None
        meter = self._meter
        if chunk.error is not None:
            raise BackendError
        if chunk.usage is not None:
            meter.take_usage(chunk.usage)
        elif type(chunk) is TimedChunk and chunk.timings is not None:
            meter.take_usage(chunk.timings.usage())
        if chunk.system_fingerprint is not None:
            meter.take_fingerprint(chunk.system_fingerprint)
        if not chunk.choices:
            if chunk.choices is None and is_flat_error(event):
                raise BackendError
            return
        choice = chunk.choices[0]
        if not self._head:
            self._service_tier = chunk.service_tier
            self._make_heads()
        if not self.finished and self._edit(choice):
            out += (self._first_head or self._head, encode(choice), b'],"usage":null}\n\n')
            self._first_head = b""

    def tail(self) -> bytes:
        """The usage chunk, always the last data, and ``[DONE]``."""
        head = self._chunk_head()
        chunk = UsageChunk(
            id=head.id,
            created=head.created,
            model=head.model,
            system_fingerprint=head.system_fingerprint,
            service_tier=head.service_tier,
            request_id=self._meter.identity.request_id,
            usage=self._meter.client_usage(),
        )
        return frame(encode(chunk)) + DONE_FRAME

    def _chunk_head(self) -> ChunkHead:
        identity = self._meter.identity
        return ChunkHead(
            id=completion_id(identity.request_id),
            created=self._created,
            model=identity.model_identifier,
            system_fingerprint=self._meter.fingerprint or UNSET,
            service_tier=self._service_tier or UNSET,
        )

    def _make_heads(self) -> None:
        # Every frame of a stream begins with the same bytes, up to its one choice.
        head = self._chunk_head()
        self._head = _open_frame(head)
        head.request_id = self._meter.identity.request_id
        self._first_head = _open_frame(head)

    def _edit(self, choice: ChoiceDelta) -> bool:
        """Make ``choice`` what the client gets; False when nothing of it is left to show."""
        delta, meter = choice.delta, self._meter
        choice.index = 0
        if delta.reasoning is not None:
            if delta.reasoning_content is None:
                delta.reasoning_content = delta.reasoning
            delta.reasoning = None
        if self._role_sent:
            delta.role = None
        else:
            self._role_sent = True
            delta.role = "assistant"
            if delta.content is None and delta.tool_calls is None:
                delta.content = ""
        if self._may_call and not delta.content:
            # A message with tool calls has null content, and clients add up the deltas: one empty
            # string, which servers like to send with the role, would make it "".
            delta.content = None
        if delta.tool_calls is not None:
            self._edit_calls(delta, delta.tool_calls)
        for text in (delta.content, delta.reasoning_content, delta.refusal):
            if text:
                meter.pieces.append(text)
                if meter.first_token is None:
                    meter.began()
        if not choice.finish_reason:
            # Some servers say "" until the end.
            choice.finish_reason = None
        else:
            choice.finish_reason = finish_reason(choice.finish_reason)
            self.finished = True
            if self._may_call and not self._calls and delta.content is None:
                delta.content = ""
            return True
        return delta != _NOTHING

    def _edit_calls(self, delta: Delta, fragments: list[ToolCallFragment]) -> None:
        meter = self._meter
        for fragment in fragments:
            function = fragment.function or FunctionFragment()
            index, first = self._index_of(fragment)
            if first:
                if not function.name:
                    raise BackendProtocolError("The model server began a tool call without a name.")
                fragment.id = fragment.id or call_id(meter, index)
                fragment.type = "function"
                function.arguments = function.arguments or ""
                meter.pieces.append(function.name)
            else:
                fragment.id = fragment.type = function.name = None
            if function.arguments:
                meter.pieces.append(function.arguments)
            fragment.index = index
            fragment.function = function
        meter.began()
        if not fragments:
            delta.tool_calls = None

    def _index_of(self, fragment: ToolCallFragment) -> tuple[int, bool]:
        """The dense index of a fragment's call, and whether the call begins with it."""
        if fragment.index is not None:
            known = self._calls.get(fragment.index)
            if known is not None:
                return known, False
        elif fragment.id is not None and fragment.id in self._call_ids:
            return self._call_ids[fragment.id], False
        elif fragment.id is None and self._calls:
            return len(self._calls) - 1, False
        dense = len(self._calls)
        self._calls[fragment.index if fragment.index is not None else dense] = dense
        if fragment.id is not None:
            self._call_ids[fragment.id] = dense
        return dense, True


_NOTHING = Delta()


def _open_frame(head: ChunkHead) -> bytes:
    return b"data: " + encode(head)[:-1] + b',"choices":['


def completion_id(request_id: str) -> str:
    """The convention's id of an answer, made from the request's own."""
    return "chatcmpl-" + request_id.removeprefix("req_")


def call_id(meter: Meter, index: int) -> str:
    """An id for a tool call that came without one."""
    return f"call_{meter.identity.request_id[-24:]}{index}"


def relay_completion(body: bytes, meter: Meter, created: int) -> CompletionObject:
    """A whole answer, read, metered and rebuilt; its ``usage`` is that of the meter now.

    Raises ``BackendError`` for an error object sent as success, ``BackendProtocolError`` for
    anything that is not an answer.
    """
    try:
        completion = decode_completion(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BackendProtocolError from None
    if completion.error is not None:
        raise BackendError
    if completion.usage is not None:
        meter.take_usage(completion.usage)
    if not completion.choices:
        if is_flat_error(body):
            raise BackendError
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
        raise BackendProtocolError("The model server did not say why its answer ended.")
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
    meter.pieces += [text for text in texts if text]
    return ChoiceObject(
        index=0,
        message=edited,
        logprobs=choice.logprobs,
        finish_reason=finish_reason(choice.finish_reason),
    )
