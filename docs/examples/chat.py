"""Three things that any OpenAI client does, against svc.

OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_API_KEY=svc_live_... python docs/examples/chat.py
"""

from __future__ import annotations

import json
import os
from typing import Any

from openai import OpenAI
from pydantic import BaseModel

MODEL = os.environ.get("MODEL", "acme/demo-8b")


class Person(BaseModel):
    name: str
    age: int


client = OpenAI()

print("-- a streamed conversation")
history: list[Any] = []
for text in ("Hello! Who are you?", "Tell me more."):
    history.append({"role": "user", "content": text})
    answer = ""
    for chunk in client.chat.completions.create(model=MODEL, messages=history, stream=True):
        if chunk.choices and (piece := chunk.choices[0].delta.content):
            print(piece, end="", flush=True)
            answer += piece
        if chunk.usage:
            print(f"\n[{chunk.usage.prompt_tokens} + {chunk.usage.completion_tokens} tokens]")
    history.append({"role": "assistant", "content": answer})

print("-- a tool call")
weather: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
messages: list[Any] = [{"role": "user", "content": "What is the weather in Lisbon?"}]
asked = client.chat.completions.create(
    model=MODEL, messages=messages, tools=[weather], tool_choice="required"
).choices[0]
call = asked.message.tool_calls[0]
print(call.function.name, json.loads(call.function.arguments))
messages += [
    asked.message,
    {"role": "tool", "tool_call_id": call.id, "content": "18 degrees and sunny"},
]
told = client.chat.completions.create(model=MODEL, messages=messages, tools=[weather])
print(told.choices[0].message.content)

print("-- an answer that fits a JSON schema")
parsed = client.chat.completions.parse(
    model=MODEL,
    messages=[{"role": "user", "content": "Ada is 36 years old."}],
    response_format=Person,
)
print(parsed.choices[0].message.parsed)
