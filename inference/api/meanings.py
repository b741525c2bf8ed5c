"""What each field of the inference surface does here, by the component of the document that has it.

The type and the bounds of a field are in its schema; these sentences say what happens with it. The
sources are the inference contract's field tables and docs/api/inference.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Meanings = Mapping[str, Mapping[str, str]]

_CONTENT: Final = (
    "The text, or parts of it. Parts of other types than `text` are carried to the model server "
    "unchanged; the models are text-only and refuse them."
)
_NAME: Final = "A name for the author, which the model server may use. It is carried unchanged."
_MESSAGE: Final = {
    "role": "Who speaks: `system` and `developer` instruct, `user` asks, `assistant` is the model's "
    "own earlier answer, `tool` is the result of a call.",
    "content": _CONTENT,
    "name": _NAME,
}
_TYPE_OF_TOOL: Final = "`function` is the only type of tool."
_FORM: Final = (
    "`text` is free text, the default. `json_object` is any JSON object: say in a message what it "
    "should have. `json_schema` follows a schema, on models with `capabilities.structured_output`."
)
_CARRIED: Final = "Carried to the model server."

REQUEST: Final[Meanings] = {
    "ChatRequest": {
        "model": "An identifier from `GET /v1/models`. It is pinned to its weights for ever. One that "
        "was never published is 404 `model_not_found`, one that has ended 404 `model_retired`.",
        "messages": "The conversation, oldest first. The gateway keeps none of it: send all of it "
        "with every request. Its bytes divided by four are reserved as input tokens.",
        "stream": "`true` sends the answer as server-sent events while it is made. Default: `false`, "
        "one JSON object at the end.",
        "stream_options": "Has no effect: a stream always ends with a usage chunk. Dropped on "
        "requests that do not stream.",
        "max_completion_tokens": "The most tokens to generate, reasoning included. It is reserved "
        "against your token limit and settled to what was used, so a small cap lets more requests run "
        "at once. Without one the model's default ceiling is reserved, and none is sent to the model "
        "server. An answer that reaches it ends with `finish_reason` `length`.",
        "max_tokens": "The older name of `max_completion_tokens`. With both, that one counts and this "
        "one is dropped.",
        "temperature": "Carried to the model server: lower is more predictable. Absent: the model's "
        "default, which its operator or the model server sets.",
        "top_p": "Carried to the model server, which samples from the most likely tokens of this "
        "total probability only. Absent: the model's default.",
        "frequency_penalty": "Carried to the model server: positive values make tokens less likely "
        "the more often they came. Absent: the model's default.",
        "presence_penalty": "Carried to the model server: positive values make tokens less likely "
        "once they came. Absent: the model's default.",
        "stop": "Texts before which the answer ends, with `finish_reason` `stop`; the text itself "
        "is not in the answer. An empty array means none, also where the model has a default.",
        "seed": "Carried to the model server. The same seed makes the same answer more likely; "
        "nothing guarantees it.",
        "logit_bias": "Carried to the model server: raises or lowers the odds of single tokens, by "
        "their ids in the model's own vocabulary. Whether it takes effect is the model server's.",
        "logprobs": "`true` adds the log probability of each token to the answer, where the model "
        "server reports it.",
        "top_logprobs": "How many likely tokens to list at each place, beside the chosen one. Model "
        "servers want `logprobs` with it.",
        "tools": "Functions that the model may call. Your code runs them; the gateway runs nothing. "
        "They count as input with every request. A model whose `capabilities.tool_calling` is false "
        "answers 400 `model_does_not_support_tools`.",
        "tool_choice": "`auto`, the default, leaves it to the model, `required` wants a call, an object "
        "names the function to call. With `none` the request is plain chat, and any model serves it.",
        "parallel_tool_calls": "`false` asks the model server for one call at a time. Dropped "
        "without `tools`.",
        "response_format": "The form of the answer. A `json_schema` is checked against the schema "
        "subset before the request is admitted, and a refused one costs nothing.",
        "n": "One choice is made per request. More than 1 is 400 `unsupported_parameter`: send the "
        "request again instead.",
        "user": f"{_CARRIED} It is in no usage row: use a key for each thing that you want told apart.",
        "safety_identifier": f"{_CARRIED} The gateway neither reads nor stores it.",
        "prompt_cache_key": "Requests with the same key go to the same server where they can, which "
        "may still have their beginning in its cache. Also carried to the model server.",
        "service_tier": "`flex` lets the request wait behind others while servers are busy. Every "
        "other value changes nothing here. Carried to the model server.",
        "store": f"{_CARRIED} The gateway stores no content for it.",
        "metadata": f"{_CARRIED} The gateway neither reads nor stores it.",
    },
    "SystemMessage": _MESSAGE,
    "DeveloperMessage": _MESSAGE,
    "UserMessage": _MESSAGE,
    "AssistantMessage": {
        **_MESSAGE,
        "content": f"{_CONTENT} In an assistant message it may be null or absent beside "
        "`tool_calls`, `refusal` or `reasoning_content`.",
        "refusal": "A refusal that the model gave instead of an answer; send it back as it came.",
        "reasoning_content": "The model's reasoning, so that its message can be sent back as it "
        "came. Whether the model reads it is up to its chat template.",
        "tool_calls": "The calls that the model made, as they came. Each needs a `tool` message "
        "with its result behind it.",
    },
    "ToolMessage": {
        **_MESSAGE,
        "content": "The result of the call, as a text for the model. JSON is a text too.",
        "tool_call_id": "The `id` of the call that this is the result of.",
    },
    "ToolCall": {
        "id": "The id by which the result refers to this call.",
        "type": _TYPE_OF_TOOL,
        "function": "The function that was called, with its arguments.",
    },
    "CalledFunction": {
        "name": "The name of the function.",
        "arguments": "JSON in a string, as the model wrote it. Not always valid: send it back as it "
        "came.",
    },
    "StreamOptions": {
        "include_usage": "Has no effect: the usage chunk is always sent.",
    },
    "Tool": {"type": _TYPE_OF_TOOL, "function": "The function, its arguments, and when to use it."},
    "FunctionDefinition": {
        "name": "The name by which the model calls it.",
        "description": "Tells the model what the function does and when to call it.",
        "parameters": "The JSON Schema of the arguments, passed on as sent. It is not checked "
        "against the schema subset. Without one the function takes none.",
        "strict": "Carried to the model server, which may then hold the arguments to the schema.",
    },
    "FunctionChoice": {"type": _TYPE_OF_TOOL, "function": "The function that must be called."},
    "NamedFunction": {"name": "The name of one of the `tools`."},
    "TextFormat": {"type": _FORM},
    "JsonObjectFormat": {"type": _FORM},
    "JsonSchemaFormat": {
        "type": _FORM,
        "json_schema": "The schema that the answer must follow, with its name.",
    },
    "NamedSchema": {
        "name": "A name for the schema, for the model and for messages about it.",
        "schema": "The JSON Schema, within the subset that the model names in "
        "`capabilities.json_schema_subset`.",
        "description": "Tells the model what the answer is for.",
        "strict": "Carried to the model server. The rules of the subset hold with and without it.",
    },
}

_TOKEN: Final = {
    "token": "The token as text; a piece of a character may be in several.",
    "logprob": "Its natural logarithm of probability.",
    "bytes": "The UTF-8 bytes of the token; null where it has none of its own.",
}
_ANSWER_HEAD: Final = {
    "id": "The id of the answer, the same in all its chunks.",
    "created": "When the answer began, in seconds since 1970.",
    "model": "The identifier that you sent, never the model server's own name.",
    "system_fingerprint": "What the model server says of its configuration, where it does.",
    "service_tier": "The tier that the model server reports, if any.",
    "request_id": "The id of the request, as in the header `x-request-id`. It finds the request in "
    "the console and in the export. In a stream it is in the first and in the last chunk.",
}
_FINISH: Final = (
    "Why the answer ended: `stop`, `length` (the cap or the context was reached), `tool_calls`, "
    "`content_filter` or `function_call`."
)
_USAGE: Final = "The token counts of the whole answer."
_REFUSED: Final = "The model's refusal, where it declined in a form of its own."
_REASONING: Final = "The model's reasoning, where it has some. It is counted and billed as output."

ANSWERS: Final[Meanings] = {
    "CompletionObject": {
        **_ANSWER_HEAD,
        "object": "Always `chat.completion`.",
        "choices": "One choice.",
        "usage": _USAGE,
    },
    "ChoiceObject": {
        "index": "Always 0.",
        "message": "The answer. Append it to `messages` as it is to go on.",
        "logprobs": "What `logprobs` asked for, else null.",
        "finish_reason": _FINISH,
    },
    "MessageObject": {
        "role": "Always `assistant`.",
        "content": "The text. Null beside `tool_calls`, unless the model wrote a text too.",
        "refusal": _REFUSED,
        "reasoning_content": _REASONING,
        "tool_calls": "The calls that the model wants; run them and send their results.",
    },
    "AnsweredToolCall": {
        "function": "The function to call, with its arguments.",
        "id": "Send it back as the `tool_call_id` of the result.",
        "type": "Always `function`.",
    },
    "FunctionCall": {
        "name": "The name of one of your `tools`.",
        "arguments": "JSON in a string, written by the model: parse it, and expect that it may be "
        "invalid.",
    },
    "UsageObject": {
        "prompt_tokens": "Input tokens as the model server counted them. Billed.",
        "completion_tokens": "Output tokens as the model server counted them, reasoning included. "
        "Billed.",
        "total_tokens": "The sum of the two.",
        "completion_tokens_details": "What of the output was not text.",
        "prompt_tokens_details": "Where the model server reports it, what of the input it knew.",
    },
    "CompletionDetailsObject": {
        "reasoning_tokens": "Already inside `completion_tokens`: never add the two.",
    },
    "PromptDetailsObject": {
        "cached_tokens": "Input that the model server had in its cache, as it reports. It changes no "
        "price.",
    },
    "ChunkHead": {**_ANSWER_HEAD, "object": "Always `chat.completion.chunk`."},
    "UsageChunk": {
        **_ANSWER_HEAD,
        "object": "Always `chat.completion.chunk`.",
        "choices": "Empty: this chunk has the usage only.",
        "usage": _USAGE,
    },
    "ChoiceDelta": {
        "index": "Always 0.",
        "delta": "What this chunk adds to the message.",
        "logprobs": "What `logprobs` asked for, else null.",
        "finish_reason": f"Null until the last chunk with a choice. {_FINISH}",
    },
    "Delta": {
        "role": "`assistant`, in the first chunk only.",
        "content": "The next piece of the text. Join the pieces.",
        "refusal": f"The next piece of a refusal. {_REFUSED}",
        "reasoning_content": f"The next piece of the reasoning. {_REASONING}",
        "reasoning": "Never sent: it is renamed to `reasoning_content`.",
        "tool_calls": "Pieces of tool calls. Collect them by `index`, and parse after the "
        "`finish_reason`.",
    },
    "ToolCallFragment": {
        "index": "Which call the piece belongs to, from 0 without gaps.",
        "id": "The id of the call, in its first piece only.",
        "type": "`function`, in the first piece of a call only.",
        "function": "The name in the first piece, and a piece of the arguments.",
    },
    "FunctionFragment": {
        "name": "The name of the function, in the first piece only.",
        "arguments": "The next piece of the JSON text of the arguments.",
    },
    "Logprobs": {
        "content": "The tokens of the text, in their order.",
        "refusal": "The tokens of a refusal, in their order.",
    },
    "TokenLogprob": {**_TOKEN, "top_logprobs": "The likely tokens at this place."},
    "TopLogprob": _TOKEN,
    "ModelList": {"object": "Always `list`.", "data": "The models, by identifier."},
    "ModelObject": {
        "id": "Send it as `model`. It may have a slash.",
        "object": "Always `model`.",
        "created": "When the entry was published, in seconds since 1970.",
        "owned_by": "The name of this service.",
        "context_length": "The most tokens of prompt and answer together.",
        "max_request_bytes": "The largest body of a request; above it 413.",
        "capabilities": "What requests to this model may ask for.",
        "pricing": "The prices in force now. A request keeps those of its beginning.",
        "lifecycle": "Whether the model ends, when, and what replaces it.",
    },
    "Capabilities": {
        "tool_calling": "Where it is false, `tools` are refused.",
        "structured_output": "Where it is false, a `json_schema` is refused.",
        "json_schema_subset": "The name of the schema subset, or null. A change that would refuse an "
        "accepted schema gets a new name.",
    },
    "Pricing": {
        "input_per_mtok": "The price of a million input tokens, as a decimal.",
        "output_per_mtok": "The price of a million output tokens, as a decimal.",
        "currency": "The currency of both prices.",
        "provisional": "Always true during the beta.",
        "reasoning_tokens_billed_as": "Always `output`: reasoning is inside the output tokens.",
    },
    "Lifecycle": {
        "status": "`active`, or `superseded`: it still serves, and `superseded_by` replaces it.",
        "superseded_by": "The identifier to move to, or null.",
        "shutdown_at": "When it stops serving, or null while no date is set. From then on it is 404 "
        "`model_retired`.",
    },
}
