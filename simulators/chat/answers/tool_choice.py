"""Chooses the tools to call, and their arguments."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from simulators.chat.answers.hints import Hints, words
from simulators.chat.answers.schema_values import UnfitSchema, value_for
from simulators.chat.wire import ChatBody, NamedToolChoice, Tool, bad_request
from svc_project.lib.ids import uuid7_hex

_SAY_NOTHING = frozenset(
    words(
        """about after also and another answer argument arguments based before call called calls check
    create current details display does every fetch find finds first float from function given
    have help information integer into list look make more name need number object only other
    output parameter parameters please provide provided result results retrieve return returned
    returns search show some specific specified string than that their them then there these they
    this those tool tools update used user using value values what when where which will with
    would your"""
    )
)
_SHORTEST_NAME_WORD = 4
_SHORTEST_DESCRIPTION_WORD = 5


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of the answer; ``arguments`` is compact JSON."""

    id: str
    name: str
    arguments: str


def choose_calls(body: ChatBody, hints: Hints) -> tuple[Call, ...]:
    """Choose the calls of the answer; none when it is a text.

    Raises ``Refusal`` when the parameters of a tool allow no value.
    """
    chosen = _chosen(body, hints)
    if body.parallel_tool_calls is False:
        chosen = chosen[:1]
    return tuple(_call(tool, hints.turned(place)) for place, tool in enumerate(chosen))


def _chosen(body: ChatBody, hints: Hints) -> list[Tool]:
    tools = body.tools or []
    if not tools or body.tool_choice == "none":
        return []
    if isinstance(body.tool_choice, NamedToolChoice):
        wanted = body.tool_choice.function.name
        return [tool for tool in tools if tool.function.name == wanted][:1]
    mentioned = [tool for tool in tools if is_mentioned(tool, hints)]
    if body.tool_choice == "required":
        return mentioned or tools[:1]
    return mentioned if body.messages[-1].role == "user" else []


def is_mentioned(tool: Tool, hints: Hints) -> bool:
    """Whether the text names the tool, or uses a distinctive word of its name or description."""
    function = tool.function
    if hints.mention(function.name):
        return True
    telling = {word for word in words(function.name) if len(word) >= _SHORTEST_NAME_WORD}
    telling |= {
        word
        for word in words(function.description or "")
        if len(word) >= _SHORTEST_DESCRIPTION_WORD
    }
    said = {word.removesuffix("s") for word in words(hints.text)}
    return any(word.removesuffix("s") in said for word in telling - _SAY_NOTHING)


def _call(tool: Tool, hints: Hints) -> Call:
    schema = tool.function.parameters or {"type": "object", "properties": {}}
    try:
        arguments = value_for({"type": "object", **schema}, hints)
    except UnfitSchema as error:
        raise bad_request(f"Tool {tool.function.name}: {error}", "tools") from None
    return Call(
        id=f"call_{uuid7_hex()}",
        name=tool.function.name,
        arguments=msgspec.json.encode(arguments).decode(),
    )
