"""What each member of the catalog's document means (docs/operate/catalog.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_BASE_URL: Final = "`http(s)://host[:port][/path]`, up to and including `/v1`."
_KEY: Final = "The environment variable that has the server's key; the key itself is never shown."
_CONCURRENCY: Final = "Requests that it gets at once, from all workers and hosts together."
_ENABLED: Final = "Whether it is used."
_LABEL: Final = "Null: what is stored stays."
_FIRST_BYTE: Final = "How long its first byte may take. Null is the default of the settings."
_TOTAL: Final = "How long an answer may take in all. Null is the default of the settings."
_EXTRA: Final = "Members that are added to the body of each request."

MEANINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "CatalogDocument": {
        "backends": "Model servers.",
        "models": "Published models and drafts.",
        "voices": "Global voices.",
        "speech_backends": "Speech servers.",
    },
    "BackendTable": {
        "name": "Identifies the server; a new name makes another one.",
        "base_url": _BASE_URL,
        "api_key_env": _KEY,
        "max_concurrency": _CONCURRENCY,
        "continuous_usage": "The older form of `running_usage`.",
        "running_usage": "How it reports tokens while a stream runs; `auto` learns it.",
        "output_cap_field": "The name or names under which it reads the most tokens to generate.",
        "headers": "Fixed headers of each request. Not for secrets.",
        "extra_fields": _EXTRA,
        "keep_alive": "`off` opens a new connection for each request.",
        "prefix_cache": "Who shares what it keeps of prompts, by `cache_salt`.",
        "enabled": _ENABLED,
        "first_byte_seconds": _FIRST_BYTE,
        "idle_seconds": "How long it may be silent in between. Null is the default of the settings.",
        "total_seconds": _TOTAL,
        "disconnect_drain_seconds": "How long an answer is read on for its tokens after the client left.",
    },
    "ModelTable": {
        "id": "What clients send as `model`. For ever once it is published.",
        "weights": "The weights that it is pinned to: `source@revision`.",
        "backends": "The servers that have these weights.",
        "context_length": "Tokens of prompt and answer together that the servers are set up for.",
        "max_request_bytes": "The largest body; above it 413.",
        "default_max_output_tokens": "Reserved where a request has no cap of its own.",
        "pricing": "The price from now on. A new one is appended, and rows keep the old one.",
        "tokenizer": "For the independent count; it belongs to the weights.",
        "tool_calling": "Whether `tools` are taken.",
        "structured_output": "Whether a `json_schema` is taken.",
        "extra_fields": f"{_EXTRA} They win over those of the server.",
        "defaults": "Values for what callers leave out, such as `temperature`.",
        "keep_alive_seconds": "After so much silence a stream gets a comment; null is never.",
        "limits": "Limits of single organizations on this model. Left out, they stay.",
        "published": "A draft is seen by nobody. It cannot be taken back.",
        "superseded_by": "The identifier that replaces it.",
        "shutdown_at": "When it stops serving. Needs `superseded_by`.",
    },
    "DeploymentTable": {
        "name": "The name of the server.",
        "model": "The server's own name for the weights.",
        "weight": "Its share of new conversations, beside the others'.",
        "draining": "It gets no new requests; those that run end.",
    },
    "PricingTable": {
        "input_per_mtok": "The price of a million input tokens: a decimal of at most 8 decimals.",
        "output_per_mtok": "The price of a million output tokens: a decimal of at most 8 decimals.",
        "currency": "Three capitals of ISO 4217.",
    },
    "LimitTable": {
        "organization": "The name of the organization.",
        "requests_per_minute": "Its requests a minute to this model.",
        "tokens_per_minute": "Its tokens a minute of this model.",
    },
    "VoiceTable": {
        "id": "What clients send as `voice`.",
        "engine_voice": "The engine's own name of the voice.",
        "language": "`hi` is for enterprise accounts only.",
        "engine": "`espeak`, `kokoro`, or the name of a speech server.",
        "neural_voice": "The neural engine's voice that speaks it where that engine can.",
        "mixed_into_clones": "Whether clones are mixed of its neural voice, among others.",
        "servers": "Further speech servers that speak the voice.",
        "weight": "The share of requests of the server that `engine` names; null: 100.",
        "enabled": _ENABLED,
        "gender": f"`female`, `male` or `neutral`. {_LABEL}",
        "accent": f"Such as `American`. {_LABEL}",
        "age": f"`young`, `middle-aged` or `old`. {_LABEL}",
        "style": f"Such as `warm`. {_LABEL}",
    },
    "VoiceServerTable": {
        "name": "The name of the speech server.",
        "engine_voice": "Its own name of the voice; empty: that of the voice.",
        "weight": "Its share of requests.",
    },
    "SpeechBackendTable": {
        "name": "Identifies the server.",
        "base_url": _BASE_URL,
        "model": "Sent as `model`.",
        "protocol": "`openai`: `POST {base_url}/audio/speech`.",
        "api_key_env": _KEY,
        "delivery": "The form of its answers: `file`, `pcm` or `sse`.",
        "sample_rate": "Of its raw PCM, where the answer names none.",
        "word_times": "How it says when each word is spoken: `none`, `header` or `captions`.",
        "speech_path": "Added to the base URL.",
        "text_field": "Its field for the text.",
        "voice_field": "Its field for the voice.",
        "format_field": "Its field for the format; empty sends none.",
        "language_field": "Its field for the language; empty sends none.",
        "speed_field": "Its field for the speed; empty sends none.",
        "instructions_field": "Its field for instructions; empty drops them.",
        "normalizes_text": "It writes out figures and signs itself.",
        "extra_fields": _EXTRA,
        "sounds": "Its spelling of audio tags; tags without one are dropped.",
        "clone_mode": "How it gets a reference clip: `none`, `inline` or `upload`.",
        "clone_field": "The field or part that has the clip.",
        "clone_as_data_url": "Whether `inline` sends a data URL or bare base64.",
        "upload_path": "Where clips are uploaded, added to the base URL.",
        "upload_name_field": "The field of an upload's name.",
        "upload_extra_fields": "Further fields of an upload.",
        "serves_clones": "Clones are spoken here; one server at most.",
        "max_concurrency": _CONCURRENCY,
        "enabled": _ENABLED,
        "first_byte_seconds": _FIRST_BYTE,
        "total_seconds": _TOTAL,
    },
    "CatalogChanges": {
        "dry_run": "Whether nothing was changed.",
        "changes": "A line for each change, in order.",
    },
    "PriceFacts": {
        "model": "The model's identifier.",
        "input_per_mtok": "The price of a million input tokens.",
        "output_per_mtok": "The price of a million output tokens.",
        "currency": "The currency of both.",
        "effective_from": "From when it is in force, until that of the next price.",
    },
}
