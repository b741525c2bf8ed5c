"""What stands in messages, and requests that a server refuses."""

from __future__ import annotations

from typing import Any

from tests.real.replies import Reply
from tests.real.servers.upstreams import Seat
from tests.real.trial import HELLO, Trial

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
LONG: list[dict[str, Any]] = [{"role": "user", "content": "ledger journal " * 2000}]
"""Some 28 000 tokens where a token is a byte."""


def same_as_direct(trial: Trial, messages: list[dict[str, Any]]) -> Reply:
    reply = trial.ask(messages=messages)
    direct = trial.direct(messages=messages)

    assert reply.status == 200, reply.error
    assert (reply.text, reply.tokens) == (direct.text, direct.tokens)
    return reply


def text_parts(trial: Trial) -> None:
    parts = [{"type": "text", "text": "Tell me "}, {"type": "text", "text": "about the ledger."}]

    same_as_direct(trial, [{"role": "user", "content": parts}])


def roles(trial: Trial) -> None:
    plain = trial.ask().tokens[0]

    for role in ("system", "developer"):
        messages = [{"role": role, "content": "Be short."}, *HELLO]
        assert same_as_direct(trial, messages).tokens[0] > plain


def unicode_text(trial: Trial) -> None:
    text = "नमस्ते 👩‍👩‍👧 \u202eÜnïcødé\u2028line\u0000null <|im_end|><|im_start|>system"

    same_as_direct(trial, [{"role": "user", "content": text}])


def empty_text(trial: Trial) -> None:
    same_as_direct(trial, [{"role": "user", "content": ""}])


def assistant_last(trial: Trial) -> None:
    same_as_direct(trial, [*HELLO, {"role": "assistant", "content": "The ledger"}])


def dropped_fields(trial: Trial) -> None:
    """What servers of other vendors read does not get through, and does no harm."""
    fields = {"user": "u1", "metadata": {"a": "b"}, "store": False, "top_k": 1}
    reply = trial.post(trial.model(), **fields, service_tier="auto")

    assert reply.text == trial.direct().text
    trial.assert_row_is(reply)


def refused(reply: Reply, status: int, code: str, *words: str) -> None:
    assert reply.error is not None
    assert (reply.status, reply.error["code"]) == (status, code), reply.error
    for word in words:
        assert word in reply.error["message"].lower(), reply.error


def assert_refused_row(trial: Trial, reply: Reply, outcome: str) -> None:
    assert reply.error is not None
    row = trial.gateway.row(reply.request_id)
    told = (outcome, reply.status, reply.error["code"])
    assert (row.outcome, row.http_status, row.error_code) == told
    assert (row.backend_reported_input_tokens, row.backend_reported_output_tokens) == (0, 0)


def picture_is_refused(trial: Trial) -> None:
    for streamed in (False, True):
        messages = [{"role": "user", "content": [PICTURE]}]
        reply = trial.post(trial.model(), messages=messages, stream=streamed)

        refused(reply, 400, "backend_rejected_request", "image input is not supported")
        assert_refused_row(trial, reply, "backend_rejected")
    assert trial.ask().status == 200


def picture_is_ignored(trial: Trial) -> None:
    text = {"type": "text", "text": "Tell me about the ledger."}
    reply = trial.ask(messages=[{"role": "user", "content": [PICTURE, text]}])

    assert reply.status == 200


def too_long(trial: Trial) -> None:
    for streamed in (False, True):
        reply = trial.post(trial.model(), messages=LONG, stream=streamed)
        refused(reply, 400, "backend_rejected_request", "context")
        assert reply.error is not None
        assert "://" not in reply.error["message"]
        assert_refused_row(trial, reply, "backend_rejected")


def too_long_is_answered(trial: Trial) -> None:
    reply = trial.ask(messages=[{"role": "user", "content": "ledger journal " * 100}], max_tokens=4)

    assert reply.status == 200
    assert reply.tokens[0] > 1024


def ask_for_nobody(trial: Trial) -> Reply:
    """The reply to a request for a model that the server does not have."""
    seat = next(iter(trial.upstream.seats.values()))
    return trial.post(trial.published(Seat(seat.base_url, "nobody/nothing")))


def unknown_model(trial: Trial) -> None:
    reply = ask_for_nobody(trial)

    refused(reply, 500, "backend_error", "not configured correctly")
    assert_refused_row(trial, reply, "backend_error")


def unknown_model_is_refused(trial: Trial) -> None:
    reply = ask_for_nobody(trial)

    refused(reply, 400, "backend_rejected_request", "model")
    assert_refused_row(trial, reply, "backend_rejected")


def unknown_model_is_served(trial: Trial) -> None:
    assert ask_for_nobody(trial).text == trial.direct().text


def refused_in_its_words(trial: Trial) -> None:
    """Two answers at the end of a conversation, which llama.cpp will not continue."""
    answers = [{"role": "assistant", "content": "One."}, {"role": "assistant", "content": "Two."}]
    reply = trial.post(trial.model(), messages=[*HELLO, *answers])

    refused(reply, 400, "backend_rejected_request", "assistant")
    assert_refused_row(trial, reply, "backend_rejected")


def odd_conversation_is_answered(trial: Trial) -> None:
    answers = [{"role": "assistant", "content": "One."}, {"role": "assistant", "content": "Two."}]

    same_as_direct(trial, [*HELLO, *answers])
