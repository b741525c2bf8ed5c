"""Rewrites the events of a streamed answer in the form of the contract.

Every frame has the same id, creation time and published model name; the role appears once; tool
calls have dense indexes and one id and name each; running usage and unknown members are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from core.asgi.sse import (
    DONE,
    DONE_FRAME,
    EventReader,
    FrameTooLarge,
    escape_line_breaks,
    frame,
)
from core.errors import ApiError, BackendError, BackendProtocolError
from inference.chat.meter import Meter
from inference.chat.relays import call_id, completion_id, finish_reason
from inference.wire.answers import (
    ChoiceDelta,
    Chunk,
    ChunkHead,
    Delta,
    FunctionFragment,
    TimedChunk,
    Timings,
    ToolCallFragment,
    UsageChunk,
    decode_any_chunk,
    decode_chunk,
    decode_timed_chunk,
    encode,
    exact_chunk,
    exact_timed_chunk,
    is_timed_by_llama_cpp,
)
from inference.wire.dialects import RunningUsage, is_flat_error


class ToolCalls:
    """The tool calls of one stream; true once there is one."""

    __slots__ = ("_by_id", "_by_index", "_meter")

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._by_index: dict[int, int] = {}
        self._by_id: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._by_index)

    def edit(self, fragments: list[ToolCallFragment]) -> None:
        """Rewrite ``fragments`` in place and count their text.

        Raises ``BackendProtocolError`` for a call without a name.
        """
        meter = self._meter
        for fragment in fragments:
            function = fragment.function or FunctionFragment()
            index, first = self._index_of(fragment)
            if first:
                if not function.name:
                    raise BackendProtocolError("The model server sent a tool call without a name.")
                fragment.id = fragment.id or call_id(meter, index)
                fragment.type = "function"
                function.arguments = function.arguments or ""
                meter.take_text(function.name)
            else:
                fragment.id = fragment.type = function.name = None
            if function.arguments:
                meter.take_text(function.arguments)
            fragment.index = index
            fragment.function = function
        meter.mark_first_token()

    def _index_of(self, fragment: ToolCallFragment) -> tuple[int, bool]:
        """Return the dense index of a fragment's call, and whether it is the call's first one."""
        if fragment.index is not None:
            known = self._by_index.get(fragment.index)
            if known is not None:
                return known, False
        elif fragment.id is not None and fragment.id in self._by_id:
            return self._by_id[fragment.id], False
        elif fragment.id is None and self._by_index:
            return len(self._by_index) - 1, False
        dense = len(self._by_index)
        self._by_index[fragment.index if fragment.index is not None else dense] = dense
        if fragment.id is not None:
            self._by_id[fragment.id] = dense
        return dense, True


LARGEST_STREAM: Final = 256 * 1024 * 1024
"""Bytes of a streamed answer: 1 KiB for each of 262 144 tokens. The stream is not held in memory;
the bound stops a backend that sends for ever."""

LARGEST_TEXT: Final = 32 * 1024 * 1024
"""Characters of a streamed answer's text, with 64 more for each piece, because the meter holds
them: 128 for each of 262 144 tokens. A real token has about 4 characters in one piece."""

LARGEST_EVENT: Final = 1024 * 1024

_END: Final = b'],"usage":null}\n\n'
_PLAIN_START, _, _PLAIN_CLOSE = encode(ChoiceDelta(delta=Delta(content="%"))).partition(b'"%"')
_PLAIN_END: Final = _PLAIN_CLOSE + _END
_NOT_A_CHUNK: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_NOTHING: Final = Delta()
_ERROR_EVENT: Final = "an event is an error"
_FEWEST_PIECES: Final = 2
_DEVIATING: Final[dict[RunningUsage, Callable[[bytes], Chunk]]] = {
    RunningUsage.NONE: decode_chunk,
    RunningUsage.VLLM: decode_chunk,
    RunningUsage.LLAMA_CPP: decode_timed_chunk,
    RunningUsage.AUTO: decode_any_chunk,
}


class StreamRelay:
    """Relays server-sent events (``relays.Relay``)."""

    def __init__(
        self, meter: Meter, created: int, running_usage: RunningUsage = RunningUsage.NONE
    ) -> None:
        self._is_timed = running_usage in (RunningUsage.LLAMA_CPP, RunningUsage.AUTO)
        self._decode: Callable[[bytes], Chunk] = (
            exact_timed_chunk if self._is_timed else exact_chunk
        )
        self._decode_deviating: Callable[[bytes], Chunk] = _DEVIATING[running_usage]
        self._asked = running_usage
        self._has_timings = False
        self._is_llama_cpp = False
        self._first_report: tuple[int, int] | None = None
        self._has_growing_counts = False
        self._pieces_before = 0
        self._reader = EventReader(LARGEST_EVENT)
        self._size = 0
        self._meter = meter
        self._created = created
        self._head = b""
        self._first_head = b""
        self._plain_head = b""
        self._service_tier: str | None = None
        self._role_sent = False
        self._may_call = meter.identity.shape == "tools"
        self._calls = ToolCalls(meter)
        self.finished = False
        self.done = False
        self.unsent = b""

    def feed(self, read: bytes) -> bytes:
        self._size += len(read)
        if self._size > LARGEST_STREAM or (
            self._size > LARGEST_TEXT and self._meter.held_characters() > LARGEST_TEXT
        ):
            raise BackendProtocolError("The model server's answer is too large.")
        if read:
            try:
                return self._take(self._reader.feed(read))
            except FrameTooLarge:
                raise BackendProtocolError("The model server sent an oversized event.") from None
        rest = self._reader.rest()
        frames = self._take([rest]) if rest else b""
        self.done = True
        return frames

    @property
    def running_usage(self) -> RunningUsage | None:
        """The dialect of the reports that came while the stream ran, or ``NONE`` without any.

        Reports are counts that grew with the text, before the chunk with the finish reason: some
        servers send ``usage`` of 0 with each chunk, and the counts at the end. None until there are
        two pieces of text without growing counts, since a report may be on the next one, and where
        the end has llama.cpp's timings: it sends text that it held back, as of tool calls, without.
        """
        if self._has_growing_counts:
            return RunningUsage.LLAMA_CPP if self._has_timings else RunningUsage.VLLM
        pieces = self._pieces_before if self.finished else len(self._meter.pieces)
        first = self._first_report[1] if self._first_report else 0
        is_enough = pieces - first >= _FEWEST_PIECES and not self._is_llama_cpp
        return RunningUsage.NONE if is_enough else None

    @property
    def is_all_reported(self) -> bool:
        asked, meter = self._asked, self._meter
        if asked is RunningUsage.NONE or not meter.reported or meter.unreported_pieces:
            return False
        if asked is RunningUsage.AUTO:
            return self._has_growing_counts
        return meter.reported_output > 0 or not meter.pieces

    def last(self) -> bytes:
        """Return the usage chunk, which is always the last data, and ``[DONE]``."""
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

    def _take(self, events: Sequence[bytes]) -> bytes:
        """Return the client's bytes for ``events``, joined; empty when there is nothing to send."""
        out: list[bytes] = []
        try:
            for event in events:
                if event == DONE:
                    self.done = True
                    break
                self._take_event(event, out)
                if not self._has_growing_counts and self._meter.is_new_report:
                    self._compare_report()
        except ApiError:
            self.unsent = escape_line_breaks(b"".join(out))
            raise
        return escape_line_breaks(b"".join(out)) if out else b""

    def _take_event(self, event: bytes, out: list[bytes]) -> None:
        try:
            chunk = self._decode(event)
        except _NOT_A_CHUNK:
            chunk = self._deviating(event)
        meter = self._meter
        if chunk.error is not None:
            raise BackendError().because(_ERROR_EVENT)
        if chunk.usage is not None:
            meter.take_usage(chunk.usage)
        elif meter.is_new_report or self._is_timed:
            self._take_without_usage(chunk)
        if chunk.system_fingerprint is not None and meter.fingerprint is None:
            meter.take_fingerprint(chunk.system_fingerprint)
        if not chunk.choices:
            self._is_llama_cpp |= is_timed_by_llama_cpp(chunk)
            if chunk.choices is None and is_flat_error(event):
                raise BackendError().because(_ERROR_EVENT)
            return
        if self.finished:
            return
        choice = chunk.choices[0]
        delta = choice.delta
        if (
            self._plain_head
            and delta.content
            and delta.reasoning_content is None
            and delta.reasoning is None
            and delta.tool_calls is None
            and delta.refusal is None
            and choice.logprobs is None
            and not choice.finish_reason
        ):
            # Nearly every chunk has nothing but a text, which is all that the client gets of it.
            meter.take_text(delta.content)
            out += (self._plain_head, encode(delta.content), _PLAIN_END)
            return
        if not self._head:
            self._service_tier = chunk.service_tier
            self._make_heads()
        if self._edit(choice):
            out += (self._first_head or self._head, encode(choice), _END)
            self._first_head = b""
            self._plain_head = self._head + _PLAIN_START

    def _compare_report(self) -> None:
        """Close a report, and note whether the counts grew with the text since the first that counted
        some: from then on a report has an output, and may stay open until text without one follows."""
        self._meter.close_report(is_final=self.finished)
        if self.finished:
            return
        output, pieces = self._meter.reported_output, len(self._meter.pieces)
        if self._first_report is None:
            if output and pieces:
                self._first_report = output, pieces
        elif output > self._first_report[0] and pieces > self._first_report[1]:
            self._has_growing_counts = True

    def _take_without_usage(self, chunk: Chunk) -> None:
        if type(chunk) is TimedChunk and chunk.timings is not None:
            self._take_timings(chunk.timings)
        elif self._meter.is_new_report:
            # Where each chunk has a report, none is closed but the last.
            self._meter.close_report(is_final=self.finished)

    def _take_timings(self, timings: Timings) -> None:
        """Take over llama.cpp's counts; a server that was not known to be one may mean others."""
        counts = timings.usage()
        figures = counts.prompt_tokens, counts.completion_tokens
        if self._asked is RunningUsage.AUTO and None in figures:
            return
        self._has_timings = True
        self._meter.take_usage(counts)

    def _deviating(self, event: bytes) -> Chunk:
        """Read an event that is not a chunk to the letter. Raises ``BackendProtocolError``."""
        try:
            return self._decode_deviating(event)
        except _NOT_A_CHUNK:
            raise BackendProtocolError().because("an event is no chunk") from None

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
        # Every frame of a stream has the same bytes before its one choice.
        head = self._chunk_head()
        self._head = _open_frame(head)
        head.request_id = self._meter.identity.request_id
        self._first_head = _open_frame(head)

    def _edit(self, choice: ChoiceDelta) -> bool:
        """Rewrite ``choice`` for the client; return False when nothing is left to send."""
        delta = choice.delta
        self._pieces_before = len(self._meter.pieces)
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
            # A message with tool calls has null content. Clients concatenate the deltas, so one
            # empty string, which servers often send with the role, would make it "".
            delta.content = None
        if delta.tool_calls is not None:
            self._calls.edit(delta.tool_calls)
            if not delta.tool_calls:
                delta.tool_calls = None
        for text in (delta.content, delta.reasoning_content, delta.refusal):
            if text:
                self._meter.take_text(text)
        if not choice.finish_reason:
            # Some servers send "" until the end.
            choice.finish_reason = None
        else:
            choice.finish_reason = finish_reason(choice.finish_reason)
            self.finished = True
            if self._may_call and not self._calls and delta.content is None:
                delta.content = ""
            return True
        return delta != _NOTHING


def _open_frame(head: ChunkHead) -> bytes:
    return b"data: " + encode(head)[:-1] + b',"choices":['
