"""Requests as code that runs as it stands: curl, Python and JavaScript.

The API key is never in the code; it is read from the variable ``KEY_VARIABLE``.
"""

from __future__ import annotations

import json
import pprint
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

KEY_VARIABLE: Final = "SVC_API_KEY"
"""The environment variable from which the code reads the key."""

_WIDTH = 88
_PYTHON_KEY: Final = (
    f'    headers={{"Authorization": f"Bearer {{os.environ[\'{KEY_VARIABLE}\']}}"}},\n'
)


@dataclass(frozen=True, slots=True)
class Snippet:
    """One request in one language. ``needs`` is the command that installs what the code imports."""

    name: str
    language: str
    code: str
    needs: str = ""


def chat(base_url: str, body: Mapping[str, Any]) -> tuple[Snippet, ...]:
    """The chat request ``body`` for the API at ``base_url``, which ends in ``/v1``."""
    return (
        Snippet("curl", "curl", _curl_post(f"{base_url}/chat/completions", body)),
        Snippet("python", "Python", _chat_python(base_url, body), "pip install openai"),
        Snippet("javascript", "JavaScript", _chat_javascript(base_url, body), "npm install openai"),
    )


def speech(base_url: str, body: Mapping[str, Any]) -> tuple[Snippet, ...]:
    """The speech request ``body``; each snippet writes the answer into a file."""
    file = f"hello.{body['response_format']}"
    # The SDKs insist on a model; the voice decides.
    sdk_body = {"model": "any", **body}
    python = (
        f"{_python_client(base_url)}\n"
        f"answer = client.audio.speech.create(\n{_python_arguments(sdk_body)})\n"
        f'answer.write_to_file("{file}")'
    )
    javascript = (
        'import { writeFile } from "node:fs/promises";\n'
        f"{_javascript_client(base_url)}\n"
        f"const answer = await client.audio.speech.create({_json(sdk_body)});\n"
        f'await writeFile("{file}", Buffer.from(await answer.arrayBuffer()));'
    )
    return (
        Snippet("curl", "curl", _curl_post(f"{base_url}/audio/speech", body, f"-o {file}")),
        Snippet("python", "Python", python, "pip install openai"),
        Snippet("javascript", "JavaScript", javascript, "npm install openai"),
    )


def speech_stream(
    base_url: str, start: Mapping[str, Any], texts: Sequence[str]
) -> tuple[Snippet, ...]:
    """A WebSocket session of the API at ``base_url``; each sentence becomes a file.

    ``start`` is the first message; ``texts`` are sent one after the other. curl has no such client.
    """
    messages = [start, *({"type": "text", "text": text} for text in texts), {"type": "done"}]
    address = f"{base_url}/audio/speech/stream"
    ending = start["response_format"]
    python = _stream_python(address, messages, ending)
    javascript = _stream_javascript(address, messages, ending)
    return (
        Snippet("python", "Python", python, "pip install websockets"),
        Snippet("javascript", "JavaScript", javascript, "npm install ws"),
    )


def usage(base_url: str) -> tuple[Snippet, ...]:
    """The usage of this month."""
    authorization = f'-H "Authorization: Bearer ${KEY_VARIABLE}"'
    return (Snippet("curl", "curl", f"curl {base_url}/usage \\\n  {authorization}"),)


def get(address: str, *, method: str = "GET", needs_key: bool = True) -> tuple[Snippet, ...]:
    """A request without a body, whose answer is JSON."""
    key = f' \\\n  -H "Authorization: Bearer ${KEY_VARIABLE}"' if needs_key else ""
    option = "" if method == "GET" else f" -X {method}"
    address_in_shell = shlex.quote(address)
    python = (
        f"{'import os' + chr(10) * 2 if needs_key else ''}import httpx\n\n"
        f'answer = httpx.{method.lower()}(\n    "{address}",\n'
        f"{_PYTHON_KEY if needs_key else ''})\n"
        "print(answer.raise_for_status().json())"
    )
    options = "" if method == "GET" else f'method: "{method}", '
    options += f"headers: {{ Authorization: `Bearer ${{process.env.{KEY_VARIABLE}}}` }}"
    given = f", {{ {options} }}" if needs_key else ""
    javascript = (
        f'const answer = await fetch("{address}"{given});\nconsole.log(await answer.json());'
    )
    return (
        Snippet("curl", "curl", f"curl{option} {address_in_shell}{key}"),
        Snippet("python", "Python", python, "pip install httpx"),
        Snippet("javascript", "JavaScript", javascript),
    )


def send(address: str, method: str, body: Mapping[str, Any]) -> tuple[Snippet, ...]:
    """A request with the JSON ``body``, whose answer is JSON."""
    option = "" if method == "POST" else f"-X {method} "
    sent = pprint.pformat(body, width=_WIDTH, sort_dicts=False)
    python = (
        f'import os\n\nimport httpx\n\nanswer = httpx.{method.lower()}(\n    "{address}",\n'
        f"{_PYTHON_KEY}    json={sent},\n)\n"
        "print(answer.raise_for_status().json())"
    )
    javascript = (
        f'const answer = await fetch("{address}", {{\n  method: "{method}",\n'
        f"  headers: {{\n    Authorization: `Bearer ${{process.env.{KEY_VARIABLE}}}`,\n"
        '    "Content-Type": "application/json",\n  },\n'
        f"  body: JSON.stringify({_json(body)}),\n}});\nconsole.log(await answer.json());"
    )
    return (
        Snippet("curl", "curl", _curl_post(option + shlex.quote(address), body)),
        Snippet("python", "Python", python, "pip install httpx"),
        Snippet("javascript", "JavaScript", javascript),
    )


def _stream_python(address: str, messages: Sequence[Mapping[str, Any]], ending: str) -> str:
    lines = "".join(f"    {each!r},\n" for each in messages)
    return (
        "import json\nimport os\n\nfrom websockets.sync.client import connect\n\n"
        f'headers = {{"Authorization": f"Bearer {{os.environ[\'{KEY_VARIABLE}\']}}"}}\n'
        f"messages = [\n{lines}]\n\n"
        f'with connect("{address}", additional_headers=headers, max_size=None) as socket:\n'
        "    for message in messages:\n"
        "        socket.send(json.dumps(message))\n"
        "    sentences = 0\n"
        "    for answer in socket:\n"
        "        if isinstance(answer, str):\n"
        "            print(answer)\n"
        "            continue\n"
        "        sentences += 1\n"
        f'        with open(f"sentence-{{sentences}}.{ending}", "wb") as file:\n'
        "            file.write(answer)"
    )


def _stream_javascript(address: str, messages: Sequence[Mapping[str, Any]], ending: str) -> str:
    return (
        'import { writeFileSync } from "node:fs";\nimport WebSocket from "ws";\n\n'
        f"const headers = {{ Authorization: `Bearer ${{process.env.{KEY_VARIABLE}}}` }};\n"
        f"const messages = {_json(messages)};\n"
        f'const socket = new WebSocket("{address}", {{ headers }});\n'
        "let sentences = 0;\n"
        'socket.on("open", () => {\n'
        "  for (const message of messages) socket.send(JSON.stringify(message));\n"
        "});\n"
        'socket.on("message", (answer, isBinary) => {\n'
        f"  if (isBinary) writeFileSync(`sentence-${{++sentences}}.{ending}`, answer);\n"
        "  else console.log(answer.toString());\n"
        "});"
    )


def _curl_post(address: str, body: Mapping[str, Any], *options: str) -> str:
    lines = [
        " ".join(("curl", *(["-N"] if body.get("stream") else []), address)),
        *options,
        f'-H "Authorization: Bearer ${KEY_VARIABLE}"',
        '-H "Content-Type: application/json"',
        f"-d {shlex.quote(_json(body))}",
    ]
    return " \\\n  ".join(lines)


def _chat_python(base_url: str, body: Mapping[str, Any]) -> str:
    create = f"client.chat.completions.create(\n{_python_arguments(body)})\n"
    if body.get("stream"):
        return (
            f"{_python_client(base_url)}\n"
            f"stream = {create}"
            "for chunk in stream:\n"
            "    if chunk.choices:\n"
            '        print(chunk.choices[0].delta.content or "", end="", flush=True)\n'
            "print()"
        )
    shown = "message" if body.get("tools") else "message.content"
    return f"{_python_client(base_url)}\nanswer = {create}print(answer.choices[0].{shown})"


def _chat_javascript(base_url: str, body: Mapping[str, Any]) -> str:
    create = f"await client.chat.completions.create({_json(body)});\n"
    if body.get("stream"):
        return (
            f"{_javascript_client(base_url)}\n"
            f"const stream = {create}"
            "for await (const chunk of stream) {\n"
            '  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");\n'
            "}\n"
            "console.log();"
        )
    shown = "message" if body.get("tools") else "message.content"
    return (
        f"{_javascript_client(base_url)}\n"
        f"const answer = {create}console.log(answer.choices[0].{shown});"
    )


def _python_client(base_url: str) -> str:
    return (
        "import os\n\nfrom openai import OpenAI\n\n"
        f'client = OpenAI(base_url="{base_url}", api_key=os.environ["{KEY_VARIABLE}"])'
    )


def _javascript_client(base_url: str) -> str:
    return (
        'import OpenAI from "openai";\n\n'
        f'const client = new OpenAI({{ baseURL: "{base_url}", '
        f"apiKey: process.env.{KEY_VARIABLE} }});"
    )


def _python_arguments(body: Mapping[str, Any]) -> str:
    """One keyword argument a line, indented."""
    lines = []
    for name, value in body.items():
        text = pprint.pformat(value, width=_WIDTH, sort_dicts=False)
        lines.append(f"    {name}={text.replace(chr(10), chr(10) + '    ')},\n")
    return "".join(lines)


def _json(value: Any) -> str:
    """Short documents in one line, others indented."""
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= _WIDTH else json.dumps(value, ensure_ascii=False, indent=2)
