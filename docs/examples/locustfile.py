"""Streamed chat requests for locust, a fixed number of them, and the tokens that they took.

    locust -f locustfile.py --headless --users 8 --host "$OPENAI_BASE_URL" --requests 200

``--host`` is the address that ends in ``/v1``; the key is read from ``OPENAI_API_KEY``. Beside locust's own
figures for a whole answer there are those for the first piece of it.
"""

import json
import os
import time

import gevent
from locust import HttpUser, events, task
from locust.exception import StopUser

left = underway = 0
sums = {"answers": 0, "prompt_tokens": 0, "completion_tokens": 0}


@events.init_command_line_parser.add_listener
def add_options(parser):
    parser.add_argument("--requests", type=int, default=100, help="How many in all")
    parser.add_argument("--model", default="acme/demo-8b")
    parser.add_argument("--prompt", default="Tell me about bees.")
    parser.add_argument("--max-tokens", type=int, default=64)


@events.test_start.add_listener
def take_number(environment, **_):
    global left
    left = environment.parsed_options.requests


@events.quitting.add_listener
def tell_tokens(**_):
    print(json.dumps(sums))


class Caller(HttpUser):
    @task
    def chat(self):
        global left, underway
        if left == 0:
            raise StopUser
        left, underway = left - 1, underway + 1
        try:
            self.ask()
        finally:
            underway -= 1
        if left == underway == 0:
            # Not from here: it ends this caller before the rest.
            gevent.spawn(self.environment.runner.quit)

    def ask(self):
        options = self.environment.parsed_options
        began = time.perf_counter()
        with self.client.post(
            "/chat/completions",
            json={
                "model": options.model,
                "messages": [{"role": "user", "content": options.prompt}],
                "max_completion_tokens": options.max_tokens,
                "stream": True,
            },
            headers={"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
            stream=True,
            catch_response=True,
        ) as answer:
            if not answer.ok:
                failure = f"{answer.status_code} {answer.text}"
            else:
                failure = self.read(answer, began)
            answer.request_meta["response_time"] = (time.perf_counter() - began) * 1000
            if failure:
                answer.failure(failure)

    def read(self, answer, began):
        """Follow a stream to its end; returns what is wrong with it, or nothing."""
        first = None
        for line in answer.iter_lines():
            data = line.removeprefix(b"data: ")
            if data == b"[DONE]":
                sums["answers"] += 1
                return None
            if not data:
                continue
            chunk = json.loads(data)
            if "error" in chunk:
                return str(chunk["error"])
            if first is None and chunk["choices"]:
                first = (time.perf_counter() - began) * 1000
                self.tell_first(first)
            for name, tokens in (chunk.get("usage") or {}).items():
                if name in sums:
                    sums[name] += tokens
        return "the stream has no end"

    def tell_first(self, milliseconds):
        events.request.fire(
            request_type="FIRST",
            name="piece of an answer",
            response_time=milliseconds,
            response_length=0,
            exception=None,
            context={},
        )
