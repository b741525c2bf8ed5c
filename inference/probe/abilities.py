"""Probes the abilities that a catalog entry promises: tool calls, and answers that match a schema."""

from __future__ import annotations

from typing import Any, Final

from inference.probe.chat import Model
from inference.probe.client import Refused
from inference.probe.findings import Found
from inference.probe.replies import ToolCall, Whole, json_object

_ROOM: Final = 2048
"""Tokens, enough for a model that reasons before it calls."""
_NAME: Final = "set_lamp"
_MEMBER: Final = "lamp_is_on"
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {_MEMBER: {"type": "boolean"}},
    "required": [_MEMBER],
    "additionalProperties": False,
}
_TOOL: Final = {
    "type": "function",
    "function": {"name": _NAME, "description": "Switch a lamp.", "parameters": _SCHEMA},
}
_BY_NAME: Final = {"type": "function", "function": {"name": _NAME}}
_CHOICES: Final[tuple[tuple[object, str], ...]] = (
    (_BY_NAME, "by name"),
    ("required", "required"),
    ("auto", "auto"),
)


async def tool_calling(model: Model) -> Found[bool]:
    """Request a tool call with each kind of ``tool_choice``, until the model makes one.

    A server that makes calls but refuses ``auto``, the usual choice, counts as unable.
    """
    refused: list[str] = []
    ran_out = False
    for choice, spelled in _CHOICES:
        try:
            whole = await _asked_to_call(model, choice, _ROOM)
        except Refused as refusal:
            if not refusal.is_about_the_request and refusal.status < 500:
                raise
            refused.append(f"tool_choice {spelled}: {refusal.words or refusal.status}")
            continue
        if any(_fits(call) for call in whole.tool_calls):
            return await _also_auto(model, spelled, refused)
        ran_out = ran_out or whole.finish_reason == "length"
    if len(refused) == len(_CHOICES):
        return Found(False, f"refused: {refused[-1]}")
    if ran_out:
        return Found(None, f"no call within {_ROOM} tokens")
    return Found(False, "it answers without a call, though one is demanded")


async def _also_auto(model: Model, spelled: str, refused: list[str]) -> Found[bool]:
    """A call came with ``tool_choice`` ``spelled``: check that ``auto`` is accepted too."""
    if spelled != "auto":
        try:
            await _asked_to_call(model, "auto", 1)
        except Refused as refusal:
            words = refusal.words or refusal.status
            return Found(False, f"a call comes, but tool_choice auto is refused: {words}")
    not_all = f"; refused: {refused[0]}" if refused else ""
    return Found(True, f"a call came with tool_choice {spelled}{not_all}")


async def _asked_to_call(model: Model, choice: object, tokens: int) -> Whole:
    text = f"Switch the lamp on: call {_NAME}."
    body = model.asked(text, tokens, tools=[_TOOL], tool_choice=choice)
    return await model.client.whole(body)


def _fits(call: ToolCall) -> bool:
    return call.name == _NAME and _fits_schema(call.arguments)


def _fits_schema(value: dict[str, Any] | None) -> bool:
    return value is not None and set(value) == {_MEMBER} and isinstance(value[_MEMBER], bool)


async def structured_output(model: Model) -> Found[bool]:
    """Request an answer that matches a schema; the prompt itself does not mention JSON."""
    schema = {"name": "lamp", "strict": True, "schema": _SCHEMA}
    response_format = {"type": "json_schema", "json_schema": schema}
    body = model.asked("Is the lamp on?", _ROOM, response_format=response_format)
    try:
        whole = await model.client.whole(body)
    except Refused as refusal:
        if not refusal.is_about_the_request and refusal.status < 500:
            raise
        return Found(False, f"refused: {refusal.words or refusal.status}")
    if _fits_schema(json_object(whole.text)):
        return Found(True, "the answer fits the schema")
    if whole.finish_reason == "length":
        return Found(None, f"no complete answer within {_ROOM} tokens")
    return Found(False, "the answer does not fit the schema")
