"""Makes plausible log probabilities from the token alone."""

from __future__ import annotations

import zlib

from simulators.chat.answers.answer import Part, Step
from simulators.chat.wire import ChatBody, Logprobs, TokenLogprob, TopLogprob

_OTHERS = (
    " the", " a", " to", " of", " and", " in", " is", " it", " that", " for", " on", " with",
    " as", " was", " at", " by", " an", " be", " this", " are", " or",
)  # fmt: skip


def logprobs_of(body: ChatBody, *steps: Step) -> Logprobs | None:
    """Make the ``logprobs`` of a choice for the content among ``steps``; None unless requested."""
    if not body.logprobs:
        return None
    return Logprobs(
        [_token(step.text, body.top_logprobs or 0) for step in steps if step.part is Part.CONTENT]
    )


def _token(text: str, alternatives: int) -> TokenLogprob:
    chosen = -(zlib.crc32(text.encode()) % 900) / 1000 - 0.001
    others = [other for other in _OTHERS if other != text]
    top = [TopLogprob(text, chosen, list(text.encode()))]
    top += [
        TopLogprob(other, round(chosen - 1.5 - 0.25 * place, 3), list(other.encode()))
        for place, other in enumerate(others)
    ]
    return TokenLogprob(text, chosen, list(text.encode()), top[:alternatives])
