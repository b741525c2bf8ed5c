"""The steps that every model must pass, and the probes of its streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from inference.probe.client import NoAnswer, ProbeClient, Refused
from inference.probe.findings import Found
from inference.probe.replies import Streamed, TokenCounts
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
    refusal: NoAnswer | None = None
    for field, tokens in ((_BOTH, 1), (_NEWER, 1), (_OLDER, 1), (_NEWER, 256)):
        try:
            whole = await client.whole(Model(client, name, field).asked("Say yes.", tokens))
        except Refused as refused:
            refusal = refusal or refused
            if not refused.is_about_the_request:
                refusal = refused
                break
        except NoAnswer as error:
            return FirstAnswer(Found(False, str(error)))
        else:
            said = f"answered in {whole.seconds:.2f} s"
            return FirstAnswer(Found(True, said), field, whole.usage, whole.seconds)
    words = str(refusal)
    if isinstance(refusal, Refused) and refusal.is_about_the_key:
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
    missing = [
        kind for kind, figures in (("whole answers", whole), ("streams", at_end)) if not figures
    ]
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
        except Refused as refused:
            return Found(False, f"is refused ({refused.words or refused.status})")
        except NoAnswer as error:
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
        if isinstance(each, NoAnswer) and not isinstance(each, Refused):
            return Found(None, str(each))
    return Found(RunningUsage.NONE, "figures come at the end only")


async def _running(model: Model, **fields: Any) -> Streamed | NoAnswer:
    """Return a stream with text, or the reason why there is none."""
    for _ in range(_TRIES):
        try:
            seen = await model.client.stream(model.asked("Count from 1 to 9.", 8, **fields))
        except NoAnswer as error:
            return error
        if seen.pieces > 1:
            return seen
    return seen
