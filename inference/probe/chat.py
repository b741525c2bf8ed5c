"""Probes chat: the steps that every model must pass, streams, tool calls and answers that match a schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from inference.probe.client import ErrorStatus, ProbeClient, ProbeError
from inference.probe.findings import Found
from inference.probe.replies import Streamed, TokenCounts, ToolCall, Whole, json_object
from inference.wire.dialects import OutputCapField, RunningUsage

CAP: Final = 5
"""Output cap in tokens, for a prompt that asks for hundreds."""
_SURELY_LONGER: Final = 24
"""Pieces of text after which the cap ``CAP`` certainly had no effect."""
_TRIES: Final = 3

_BOTH, _OLDER, _NEWER = (
    OutputCapField.BOTH,
    OutputCapField.MAX_TOKENS,
    OutputCapField.MAX_COMPLETION_TOKENS,
)


def cap_fields(field: OutputCapField, tokens: int) -> dict[str, Any]:
    """Return the request fields that cap the answer at ``tokens``."""
    names = (_OLDER.value, _NEWER.value) if field is _BOTH else (field.value,)
    return dict.fromkeys(names, tokens)


@dataclass(frozen=True)
class Model:
    """One model of a server; ``cap_field`` is an output cap field that it does not refuse."""

    client: ProbeClient
    name: str
    cap_field: OutputCapField = _BOTH

    def asked(self, text: str, tokens: int, **fields: Any) -> dict[str, Any]:
        """Build a request with one message, whose answer is capped at ``tokens``."""
        return self.request(text, **cap_fields(self.cap_field, tokens), **fields)

    def request(self, text: str, **fields: Any) -> dict[str, Any]:
        """Build a request with one message."""
        return {"model": self.name, "messages": [{"role": "user", "content": text}], **fields}


@dataclass(frozen=True)
class FirstAnswer:
    """The outcome of the first request; ``cap_field``: the fields with which it was capped."""

    found: Found[bool]
    cap_field: OutputCapField = _BOTH
    usage: TokenCounts | None = None
    seconds: float = 0.0


async def first_answer(client: ProbeClient, name: str) -> FirstAnswer:
    """Request a whole answer of one token.

    If the server refuses it, retry with one cap field only, then with room for reasoning.
    """
    refusal: ProbeError | None = None
    for field, tokens in ((_BOTH, 1), (_NEWER, 1), (_OLDER, 1), (_NEWER, 256)):
        try:
            whole = await client.whole(Model(client, name, field).asked("Say yes.", tokens))
        except ErrorStatus as refused:
            refusal = refusal or refused
            if not refused.is_about_the_request:
                refusal = refused
                break
        except ProbeError as error:
            return FirstAnswer(Found(False, str(error)))
        else:
            said = f"answered in {whole.seconds:.2f} s"
            return FirstAnswer(Found(True, said), field, whole.usage, whole.seconds)
    words = str(refusal)
    if isinstance(refusal, ErrorStatus) and refusal.is_about_the_key:
        words = "the key is refused: " if client.target.has_key else "a key is wanted: "
        words += str(refusal)
    return FirstAnswer(Found(False, words))


async def streamed(model: Model) -> tuple[Found[bool], Streamed | None]:
    """Request a short stream as the gateway does, with usage at the end."""
    body = model.asked("Say yes.", 8, stream_options={"include_usage": True})
    seen = await model.client.stream(body)
    if not seen.is_complete:
        return Found(False, "the stream ends without a finish reason"), None
    done = "" if seen.done else "; without [DONE]"
    return Found(True, f"{seen.chunks} chunks{done}"), seen


def usage(whole: TokenCounts | None, stream: Streamed | None) -> Found[bool]:
    """Whether both whole answers and streams come with token counts."""
    at_end = stream.usage if stream else None
    if whole and at_end:
        return Found(True, f"{whole.prompt} in and {whole.completion} out for a whole answer")
    missing = [kind for kind, usage in (("whole answers", whole), ("streams", at_end)) if not usage]
    return Found(False, f"not with {' and '.join(missing)}: those cost nothing")


async def output_cap(model: Model) -> Found[OutputCapField]:
    """Find out which field caps an answer."""
    older, newer = await _capped(model, _OLDER), await _capped(model, _NEWER)
    both = await _capped(model, _BOTH)
    said = f"max_tokens {older.words}, max_completion_tokens {newer.words}"
    if both.value:
        return Found(_BOTH, said)
    for field, one in ((_NEWER, newer), (_OLDER, older)):
        if one.value:
            return Found(field, f"{said}, together {both.words}")
    return Found(None, said)


async def _capped(model: Model, field: OutputCapField) -> Found[bool]:
    """Whether a cap in ``field`` cuts an answer; not known when the answer is short by itself."""
    text = "Count from 1 to 200 in digits, with commas, and nothing else."
    body = model.request(text, **cap_fields(field, CAP), stream_options={"include_usage": True})
    for _ in range(_TRIES):
        try:
            seen = await model.client.stream(body, most_pieces=_SURELY_LONGER)
        except ErrorStatus as refused:
            return Found(False, f"is refused ({refused.words or refused.status})")
        except ProbeError as error:
            return Found(None, f"is not known ({error})")
        tokens = seen.usage.completion if seen.usage and not seen.disconnected else seen.pieces
        if seen.disconnected or tokens > CAP:
            return Found(False, "is ignored")
        if seen.finish_reason == "length":
            return Found(True, "is obeyed")
    return Found(None, "is not known (the answer ended by itself)")


async def running_usage(model: Model) -> Found[RunningUsage]:
    """Find out in which dialect token counts come while a stream runs."""
    asked = {"include_usage": True, "continuous_usage_stats": True}
    vllm = await _running(model, stream_options=asked)
    if isinstance(vllm, Streamed) and vllm.pieces_with_usage:
        return Found(RunningUsage.VLLM, "usage on every chunk, by continuous_usage_stats")
    llama = await _running(model, stream_options={"include_usage": True}, timings_per_token=True)
    if isinstance(llama, Streamed) and llama.pieces_with_timings:
        return Found(RunningUsage.LLAMA_CPP, "timings on every chunk, by timings_per_token")
    for each in (vllm, llama):
        if isinstance(each, ProbeError) and not isinstance(each, ErrorStatus):
            return Found(None, str(each))
    return Found(RunningUsage.NONE, "token usage comes at the end only")


async def _running(model: Model, **fields: Any) -> Streamed | ProbeError:
    """Return a stream with text, or the reason why there is none."""
    for _ in range(_TRIES):
        try:
            seen = await model.client.stream(model.asked("Count from 1 to 9.", 8, **fields))
        except ProbeError as error:
            return error
        if seen.pieces > 1:
            return seen
    return seen


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
        except ErrorStatus as refusal:
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
        except ErrorStatus as refusal:
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
    except ErrorStatus as refusal:
        if not refusal.is_about_the_request and refusal.status < 500:
            raise
        return Found(False, f"refused: {refusal.words or refusal.status}")
    if _fits_schema(json_object(whole.text)):
        return Found(True, "the answer fits the schema")
    if whole.finish_reason == "length":
        return Found(None, f"no complete answer within {_ROOM} tokens")
    return Found(False, "the answer does not fit the schema")
