"""The members of ``messages``: one struct per role.

Members that are not modelled are dropped, also in text parts; content parts of other types are
passed on whole, as the contract requires. ``reasoning_content`` is the open-weights convention's
name for an assistant's reasoning: it is modelled so that an assistant message can be appended as
received.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from inference.wire import wording

Content = str | list[dict[str, Any]]
"""A string, or content parts: each an object with a string ``type``."""


class _Message(Struct, tag_field="role", omit_defaults=True):
    content: Content
    name: str | None = None


class SystemMessage(_Message, tag="system"):
    pass


class DeveloperMessage(_Message, tag="developer"):
    pass


class UserMessage(_Message, tag="user"):
    pass


class ToolMessage(Struct, tag_field="role", tag="tool", omit_defaults=True):
    tool_call_id: str
    content: Content
    name: str | None = None


class CalledFunction(Struct):
    """``arguments`` is JSON in a string, as the model wrote it: not always valid."""

    name: str
    arguments: str


class ToolCall(Struct):
    id: str
    type: Literal["function"]
    function: CalledFunction


class AssistantMessage(Struct, tag_field="role", tag="assistant", omit_defaults=True):
    """``content`` is passed on unchanged: null stays null, absent stays absent."""

    content: Content | UnsetType | None = UNSET
    name: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None


Message = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage


def settle_messages(messages: list[Message]) -> None:
    """Apply in place the rules that concern more than one member of a message.

    Raises ``InvalidField`` for an invalid content part, and for an assistant message without any
    content.
    """
    for index, message in enumerate(messages):
        content = message.content
        if type(content) is list:
            message.content = [
                _part(part, f"messages[{index}].content[{place}]")
                for place, part in enumerate(content)
            ]
        if type(message) is AssistantMessage:
            message.tool_calls = message.tool_calls or None
            if content is None or content is UNSET:
                _require_substitute(message, f"messages[{index}].content")


def _part(part: dict[str, Any], path: str) -> dict[str, Any]:
    kind = part.get("type")
    if kind is None:
        raise wording.missing(f"{path}.type")
    if type(kind) is not str:
        raise wording.wrong(f"{path}.type", type(kind).__name__)
    if kind != "text":
        return part
    text = part.get("text")
    if text is None:
        raise wording.missing(f"{path}.text")
    if type(text) is not str:
        raise wording.wrong(f"{path}.text", type(text).__name__)
    return {"type": "text", "text": text}


def _require_substitute(message: AssistantMessage, path: str) -> None:
    said = (message.tool_calls, message.refusal, message.reasoning_content)
    if all(part is None for part in said):
        raise wording.refused(
            path,
            "is required in an assistant message without 'tool_calls', 'refusal' or "
            "'reasoning_content'. Send a string or an array of content parts.",
        )
