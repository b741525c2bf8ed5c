"""The feature table: what works behind the gateway with each server, and why the rest does not.

``docs/connect-servers.md`` shows this table (``tests.real.feature_page`` writes it there). A cell is
``check``, or a ``Differs``: the reason, and a check that it is so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.real.checks import answers, contents, faults, tools
from tests.real.servers.upstreams import Server
from tests.real.trial import Trial

Check = Callable[[Trial], None]


@dataclass(frozen=True)
class Differs:
    """Why a cell is not green, in a sentence; ``check`` sees it, None where it is not tried."""

    reason: str
    check: Check | None


@dataclass(frozen=True)
class Feature:
    """A row: what a caller wants, and the check that it works."""

    title: str
    check: Check
    differs: Mapping[Server, Differs] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Short, for the names of tests."""
        return self.check.__name__

    def check_with(self, server: Server) -> Check | None:
        """What is to be seen with ``server``."""
        differs = self.differs.get(server)
        return self.check if differs is None else differs.check


def transformers(reason: str, check: Check | None = None) -> Mapping[Server, Differs]:
    return {Server.TRANSFORMERS: Differs(reason, check)}


def everywhere(reason: str, check: Check) -> Mapping[Server, Differs]:
    return dict.fromkeys(Server, Differs(reason, check))


def on_llama(reason: str, check: Check) -> Mapping[Server, Differs]:
    """What llama.cpp does, behind LiteLLM's proxy too."""
    return dict.fromkeys((Server.LLAMA_CPP, Server.LITELLM), Differs(reason, check))


ONLY_NOISE = "Not tried: the tiny model here answers nonsense."
NO_COUNTERS = "Not tried: the server has no counters of its own to compare with."
SLOW_START = "Not tried: the server takes too long to start to be killed in a test."
BAD_REQUEST = (
    "The server calls it a bad request, so the caller gets 400 `backend_rejected_request`."
)
SHAPES_ARE_IGNORED = "The server ignores it: 200 with text. Declare `structured_output = false`."
BEHIND_PROXY = "The proxy answers that the server behind it failed, so it is a `backend_error`."

FEATURES = (
    Feature("Whole answer", answers.whole),
    Feature("Stream, with `[DONE]`", answers.streamed),
    Feature("Usage on streams, asked for or not", answers.usage_is_there_without_being_asked_for),
    Feature(
        "Rows of 24 requests, 6 at a time, are the server's own counters",
        answers.many_at_once,
        transformers(NO_COUNTERS),
    ),
    Feature(
        "Characters whose bytes are in several tokens",
        answers.split_characters,
        transformers(ONLY_NOISE),
    ),
    Feature("Bytes that are no UTF-8", answers.noise_in_characters),
    Feature(
        "Reasoning (`reasoning_content`), whole and streamed",
        answers.reasoning,
        transformers(ONLY_NOISE),
    ),
    Feature("`max_tokens`", answers.max_tokens),
    Feature("`max_completion_tokens`", answers.max_completion_tokens),
    Feature("No cap", answers.no_cap, transformers(ONLY_NOISE)),
    Feature("A cap beyond the context", answers.cap_beyond_the_context, transformers(ONLY_NOISE)),
    Feature(
        "`stop`, whole and streamed",
        answers.stop_sequences,
        transformers("The server leaves the sequence in the text.", answers.stop_sequences_stay),
    ),
    Feature("`seed`, of 64 bits and negative too", answers.seed),
    Feature("`temperature`", answers.temperature),
    Feature("`top_p`", answers.nucleus),
    Feature("`frequency_penalty`, `presence_penalty`", answers.penalties),
    Feature("`logit_bias`", answers.logit_bias),
    Feature(
        "`n` above 1",
        answers.several_choices,
        everywhere(
            "The gateway serves one choice: 400 `unsupported_parameter`, before the server is asked.",
            answers.several_choices,
        ),
    ),
    Feature(
        "`logprobs`, `top_logprobs`, whole and streamed",
        answers.logprobs,
        transformers("The server ignores it; `logprobs` is null.", answers.no_logprobs),
    ),
    Feature(
        "Cached prompt tokens in the usage",
        answers.cached_prompt,
        transformers("The server does not report them.", answers.no_cached_prompt),
    ),
    Feature(
        "`system_fingerprint` on the row",
        answers.fingerprint,
        transformers("The server sends none.", answers.no_fingerprint),
    ),
    Feature(
        "Tools: two calls in one answer",
        tools.parallel_calls,
        transformers(
            "The server ignores tools for models that it has no parser for: 200 with text.",
            tools.tools_are_ignored,
        ),
    ),
    Feature("Tools, streamed in fragments", tools.streamed_calls, transformers(ONLY_NOISE)),
    Feature(
        "Tools through the stream helper of openai-python",
        tools.sdk_streams_calls,
        transformers(ONLY_NOISE),
    ),
    Feature("`tool_choice`: required, named", tools.required_and_named, transformers(ONLY_NOISE)),
    Feature("`tool_choice`: none", tools.choice_none, transformers(ONLY_NOISE)),
    Feature(
        "`parallel_tool_calls: false`",
        tools.one_call_at_a_time,
        {
            **on_llama(
                "llama.cpp ignores it with this chat template: two calls come.",
                tools.several_calls_all_the_same,
            ),
            **transformers(ONLY_NOISE),
        },
    ),
    Feature("Tool results in the conversation", tools.history, transformers(ONLY_NOISE)),
    Feature(
        "`response_format`: json_object",
        tools.json_object,
        transformers(SHAPES_ARE_IGNORED, tools.shapes_are_ignored),
    ),
    Feature(
        "`response_format`: json_schema, whole and streamed",
        tools.json_schema,
        transformers(SHAPES_ARE_IGNORED, tools.shapes_are_ignored),
    ),
    Feature(
        "A class parsed by openai-python",
        tools.sdk_parses_a_class,
        transformers(SHAPES_ARE_IGNORED, tools.shapes_are_ignored),
    ),
    Feature("Text in parts", contents.text_parts),
    Feature("Roles `system` and `developer`", contents.roles),
    Feature("Unicode, NUL, U+2028, special tokens as text", contents.unicode_text),
    Feature("An empty message", contents.empty_text),
    Feature("An assistant message at the end, to be continued", contents.assistant_last),
    Feature("Fields that the API does not have are dropped", contents.dropped_fields),
    Feature(
        "A picture for a text model",
        contents.picture_is_ignored,
        on_llama(
            "The server answers 500 with its reason, the gateway 400 `backend_rejected_request` with the same.",
            contents.picture_is_refused,
        ),
    ),
    Feature(
        "A prompt beyond the context is a 400 in the server's words",
        contents.too_long,
        transformers(
            "The server has no limit: 200, of whatever quality.", contents.too_long_is_answered
        ),
    ),
    Feature(
        "A name that the server does not know is the operator's error (500, and a line in the log)",
        contents.unknown_model,
        {
            Server.LLAMA_CPP: Differs(
                "The server has one model and answers for it, whatever name it is asked for.",
                contents.unknown_model_is_served,
            ),
            Server.LITELLM: Differs(BAD_REQUEST, contents.unknown_model_is_refused),
            Server.TRANSFORMERS: Differs(BAD_REQUEST, contents.unknown_model_is_refused),
        },
    ),
    Feature(
        "What the server refuses is a 400 in its words",
        contents.refused_in_its_words,
        transformers(
            "The server takes what llama.cpp refuses here.", contents.odd_conversation_is_answered
        ),
    ),
    Feature(
        "A client leaves a stream: metered, and the server let go",
        faults.leaving_a_stream,
        {
            Server.LITELLM: Differs(
                "Metered, but the proxy closes its connection to the server behind it late or never, so "
                "that server keeps generating, up to the cap.",
                faults.leaving_only_the_gateway,
            ),
            **transformers(NO_COUNTERS),
        },
    ),
    Feature(
        "A client leaves before the first token",
        faults.leaving_before_the_first_token,
        transformers(NO_COUNTERS),
    ),
    Feature(
        "A client leaves a whole answer: its token usage is taken",
        faults.leaving_a_whole_answer,
        transformers(NO_COUNTERS),
    ),
    Feature(
        "The server is killed in a stream: `backend_unavailable`",
        faults.killed_in_a_stream,
        {
            Server.LITELLM: Differs(BEHIND_PROXY, faults.killed_behind_a_proxy),
            **transformers(SLOW_START),
        },
    ),
    Feature(
        "The server is dead (`backend_unavailable`), and comes back",
        faults.dead_and_back,
        {
            Server.LITELLM: Differs(BEHIND_PROXY, faults.dead_behind_a_proxy),
            **transformers(SLOW_START),
        },
    ),
    Feature(
        "The server falls silent in a stream: `backend_timeout`",
        faults.silent_in_a_stream,
        transformers(SLOW_START),
    ),
    Feature(
        "The server is silent from the start: `backend_timeout`",
        faults.silent_from_the_start,
        transformers(SLOW_START),
    ),
)
