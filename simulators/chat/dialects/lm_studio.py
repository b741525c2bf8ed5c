"""LM Studio. Its server is not public: these habits were read in reports with its output."""

from __future__ import annotations

from inference.wire.dialects import RunningUsage
from simulators.chat.dialects.definition import Calls, Dialect, InBandError, Members, Opening

_FAILED = "Compute error."


def _refusal(_status: int, message: str) -> Members:
    return {"error": message}


LM_STUDIO = Dialect(
    sources=(
        "lmstudio-bug-tracker issue 676: the role with the first text, the model as fingerprint, "
        "logprobs null, finish chunk with an empty delta, [DONE]; stats beside usage",
        'lmstudio-bug-tracker issue 649: later tool call pieces have the name ""',
        "zed pull request 57861: usage on streams when asked for, in a chunk without choices",
        'lmstudio-bug-tracker issue 1050: an error is {"error": "text"}, a 400 even for a crash',
        "goai pull request 110: the error in a stream",
        "AutoByteus release 1.2.60: reasoning_content, or reasoning, by setting",
    ),
    running_usage=RunningUsage.NONE,
    reasoning_field="reasoning_content",
    opening=Opening.WITH_FIRST_TOKEN,
    calls=Calls.EMPTY_NAMES,
    fingerprint="{model}",
    choice_members={"logprobs": None},
    message_members={"content": "", "tool_calls": []},
    whole_members={"stats": {}},
    in_band_error=InBandError({"error": {"message": _FAILED}, "message": _FAILED}),
    refusal=_refusal,
)
