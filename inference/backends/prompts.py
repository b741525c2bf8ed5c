"""What a prompt is known by: a few marks of its beginning, and one of its conversation.

Marks are hashes of its beginning (tools, system prompt, first user message); no tokenizer is needed, and
later turns are not read, so that the cost does not grow with a conversation.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

import msgspec

from core.sharing.priority import Priority
from inference.wire import ChatRequest
from inference.wire.request import AssistantMessage, Message, UserMessage

SMALLEST_BYTES: Final = 1024
"""A shorter prompt is placed by work alone."""
_STEPS: Final = (2048, 8192, 32_768, 131_072)
"""Bytes of a beginning that have marks of their own: prompts may part after any of them."""

_NAMED: Final = 1 << 32
"""Sets marks of keys apart from those of contents, which have 32 bits."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Prompt:
    """The marks of a prompt of ``size`` bytes."""

    organization_id: str
    size: int
    beginning: tuple[tuple[int, int], ...] = ()
    """Hashes of its beginning and the bytes that each is of, the longest last; none of a short prompt."""
    conversation: int | None = None
    """The mark of a later turn: of the beginning and the first answer."""
    named: int | None = None
    """The mark of ``prompt_cache_key``: it says which prompts belong together, not that they are alike."""
    home: int = 0
    """Places it alike in every worker (``Server.rank``)."""
    head: int = 0
    """The hash of what comes before the first user message, which other prompts may have too."""
    earlier: int = 0
    """Bytes that earlier turns had; 0 for a first turn."""
    priority: Priority = Priority.STANDARD
    """Its class in the queues; it does not place a prompt."""

    @property
    def marks(self) -> tuple[int, ...]:
        """All marks, those of the conversation last."""
        own = [mark for mark in (self.conversation, self.named) if mark is not None]
        return (*(mark for mark, _ in self.beginning), *own)


def prompt_of(
    request: ChatRequest, organization_id: str, size: int, priority: Priority = Priority.STANDARD
) -> Prompt:
    """Return the marks of a request whose body has ``size`` bytes."""
    if size < SMALLEST_BYTES:
        return Prompt(organization_id, size, priority=priority)
    crc32 = zlib.crc32
    parts = [_encode(request.tools)] if request.tools else []
    messages = iter(request.messages)
    for message in messages:
        if type(message) is UserMessage:
            break
        parts.append(_bytes_of(message))
    head = b"\0".join(parts)
    text = memoryview(b"\0".join((head, _bytes_of(message))))
    mark = head_mark = start = 0
    marks = []
    for end in sorted({len(head), *_STEPS, len(text)}):
        if start < end <= len(text):
            mark = crc32(text[start:end], mark)
            marks.append((mark, end))
            start = end
        if end == len(head):
            head_mark = mark
    conversation, named, home, earlier = None, None, mark, 0
    following = next(messages, None)
    if type(following) is AssistantMessage:
        conversation = crc32(_bytes_of(following), mark)
        last = request.messages[-1].content
        earlier = max(size - len(last), 0) if type(last) is str else size
    if (key := request.prompt_cache_key) is not None:
        home = crc32(key.encode())
        named = _NAMED | home
    return Prompt(
        organization_id, size, tuple(marks), conversation, named, home, head_mark, earlier, priority
    )


def _bytes_of(message: Message) -> bytes:
    content = message.content
    return content.encode() if type(content) is str else _encode(message)
