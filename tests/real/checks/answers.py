"""Text, usage and the bounds of an answer."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import httpx2

from tests.real.replies import Reply, reply_of
from tests.real.servers.upstreams import ANSWER, THOUGHT, Says
from tests.real.trial import SETTLED, Trial
from tests.support.live import NO_TLS

TOGETHER = 24


def whole(trial: Trial) -> None:
    reply, direct = trial.ask(), trial.direct()

    assert (reply.status, reply.finish) == (200, direct.finish)
    assert reply.text == direct.text != ""


def streamed(trial: Trial) -> None:
    reply, direct = trial.ask(stream=True), trial.direct(stream=True)

    assert (reply.text, reply.finish) == (direct.text, direct.finish)
    assert reply.text != ""
    assert (reply.ended, reply.usages) == (True, 1)
    assert reply.frames > 5


def usage_is_there_without_being_asked_for(trial: Trial) -> None:
    asked = trial.ask(stream=True, stream_options={"include_usage": True})
    declined = trial.ask(stream=True, stream_options={"include_usage": False})

    assert asked.usages == declined.usages == 1
    assert asked.tokens == declined.tokens


def split_characters(trial: Trial) -> None:
    whole = trial.ask(Says.THOUGHTS, max_tokens=200)
    streamed = trial.ask(Says.THOUGHTS, max_tokens=200, stream=True)

    assert whole.text.strip() == streamed.text.strip() == ANSWER


def noise_in_characters(trial: Trial) -> None:
    """Random bytes: what is no UTF-8 comes as the server writes it, and nothing breaks."""
    noisy: dict[str, Any] = {"max_tokens": 150, "seed": 7, "temperature": 1.5}
    reply = trial.ask(stream=True, **noisy)

    assert reply.ended
    assert len(reply.text) > 50


def reasoning(trial: Trial) -> None:
    whole = trial.ask(Says.THOUGHTS, max_tokens=200)
    streamed = trial.ask(Says.THOUGHTS, max_tokens=200, stream=True)

    assert whole.reasoning.strip() == streamed.reasoning.strip() == THOUGHT
    assert whole.text.strip() == ANSWER


def many_at_once(trial: Trial) -> None:
    llama = trial.llama()
    model = trial.model()
    before = llama.be_quiet()

    async def callers() -> Counter[str]:
        found: Counter[str] = Counter()
        numbers = iter(range(TOGETHER))

        async def caller(client: httpx2.AsyncClient) -> None:
            for number in numbers:
                answer = await client.post(
                    "/chat/completions",
                    json={
                        **SETTLED,
                        "model": model,
                        "max_tokens": 1 + number,
                        "stream": number % 3 != 0,
                    },
                    headers=trial.gateway.headers,
                )
                reply = reply_of(answer)
                found[reply.finish or str(reply.error)] += 1

        async with httpx2.AsyncClient(
            base_url=trial.gateway.base_url, timeout=120, verify=NO_TLS
        ) as client:
            await asyncio.gather(*(caller(client) for _ in range(6)))
        return found

    assert asyncio.run(callers()) == {"length": TOGETHER}
    rows, after = trial.gateway.rows_when(TOGETHER), llama.counters()
    assert sum(row.backend_reported_input_tokens for row in rows) == (
        after.prompt_tokens - before.prompt_tokens
    )
    assert sum(row.backend_reported_output_tokens for row in rows) == (
        after.output_tokens - before.output_tokens
    )


def max_tokens(trial: Trial) -> None:
    assert trial.ask(max_tokens=7).tokens[1] == 7
    assert trial.ask(max_tokens=7, stream=True).finish == "length"


def max_completion_tokens(trial: Trial) -> None:
    reply = trial.ask(max_tokens=None, max_completion_tokens=7)

    assert (reply.finish, reply.tokens[1]) == ("length", 7)


def no_cap(trial: Trial) -> None:
    reply = trial.ask(Says.THOUGHTS, max_tokens=None)

    assert (reply.finish, reply.text.strip()) == ("stop", ANSWER)


def cap_beyond_the_context(trial: Trial) -> None:
    reply = trial.ask(Says.THOUGHTS, max_tokens=10**9)

    assert (reply.finish, reply.text.strip()) == ("stop", ANSWER)


def stopped_texts(trial: Trial) -> tuple[str, str, set[str]]:
    """What comes before a stop sequence, the sequence, and the texts that it ended."""
    plain = trial.direct(max_tokens=40).text
    found = re.search(r"(?<=.)[A-Za-z]{2}", plain)
    assert found is not None
    replies = [
        trial.ask(stop=["never said", found[0]], stream=streamed, max_tokens=40)
        for streamed in (False, True)
    ]
    assert {reply.finish for reply in replies} == {"stop"}
    return plain[: plain.index(found[0])], found[0], {reply.text for reply in replies}


def stop_sequences(trial: Trial) -> None:
    before, _, texts = stopped_texts(trial)

    assert texts == {before}


def stop_sequences_stay(trial: Trial) -> None:
    before, stop, texts = stopped_texts(trial)

    assert texts == {before + stop}


def seed(trial: Trial) -> None:
    def said(number: int) -> str:
        return trial.ask(seed=number, temperature=1.5).text

    assert said(5) == said(5) != said(6)
    assert trial.ask(seed=2**40, temperature=1.5).status == 200
    assert trial.ask(seed=-5, temperature=1.5).status == 200


def temperature(trial: Trial) -> None:
    settled = trial.direct().text

    assert trial.ask(temperature=0).text == settled
    assert trial.ask(temperature=2, seed=3).text != settled


def nucleus(trial: Trial) -> None:
    assert trial.ask(temperature=1, top_p=0.000001).text == trial.direct().text


def penalties(trial: Trial) -> None:
    fields: dict[str, Any] = {"frequency_penalty": 2, "presence_penalty": 2, "max_tokens": 60}
    reply = trial.ask(**fields)

    assert reply.text == trial.direct(**fields).text != trial.direct(max_tokens=60).text


def logit_bias(trial: Trial) -> None:
    """Token 70 outweighs all others."""
    reply = trial.ask(logit_bias={"70": 100.0}, max_tokens=6)

    assert len(set(reply.text)) == 1


def several_choices(trial: Trial) -> None:
    reply = trial.post(trial.model(), n=2)

    assert reply.status == 400
    assert reply.error is not None
    assert reply.error["code"] == "unsupported_parameter"
    assert not trial.gateway.rows()


def logprobs(trial: Trial) -> None:
    for streamed in (False, True):
        fields: dict[str, Any] = {"logprobs": True, "top_logprobs": 3, "stream": streamed}
        reply = trial.ask(Says.CALLS, **fields)
        assert len(reply.logprobs) == reply.tokens[1] == 24
        direct = trial.direct(Says.CALLS, **fields)
        # llama.cpp adds ids of its own, which the API does not have.
        assert tokens_of(reply) == tokens_of(direct)
        assert {len(each["top_logprobs"]) for each in reply.logprobs} == {3}


def tokens_of(reply: Reply) -> list[str]:
    return [each["token"] for each in reply.logprobs]


def no_logprobs(trial: Trial) -> None:
    assert trial.ask(logprobs=True, top_logprobs=3).logprobs == []


def cached_prompt(trial: Trial) -> None:
    """The second answer's prompt comes from the server's cache, and its usage says so."""
    fields: dict[str, Any] = {
        "messages": [{"role": "user", "content": "A prompt that is long enough. " * 4}]
    }
    trial.ask(**fields)

    reply = trial.ask(**fields)

    assert reply.usage is not None
    assert reply.usage["prompt_tokens_details"]["cached_tokens"] > 50


def no_cached_prompt(trial: Trial) -> None:
    reply = trial.ask()

    assert reply.usage is not None
    assert "prompt_tokens_details" not in reply.usage


def fingerprint(trial: Trial) -> None:
    reply = trial.ask()

    assert trial.gateway.row(reply.request_id).system_fingerprint == "b0-unknown"


def no_fingerprint(trial: Trial) -> None:
    reply = trial.ask()

    assert trial.gateway.row(reply.request_id).system_fingerprint is None
