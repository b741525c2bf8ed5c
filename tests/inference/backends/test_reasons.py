"""A model server's reason for a refusal is kept in every dialect, without addresses and paths."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from inference.backends.cache_salt import salt_of
from inference.backends.reasons import impossible_in, reason_in, secrets_in
from tests.support.fuzzing.mutations import within

NO = "maximum context length is 1024 tokens"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": {"message": NO, "type": "BadRequestError", "code": 400}}, NO),
        ({"error": NO, "error_type": "validation"}, NO),
        ({"object": "error", "message": NO, "code": 400}, NO),
        ({"detail": NO}, NO),
        ({"detail": {"error": {"message": NO}}}, NO),
        (
            {
                "detail": [
                    {"type": "missing", "loc": ["body", "messages", 0, "role"], "msg": "required"},
                    {"type": "int_parsing", "loc": ["body", "n"], "msg": "not an integer"},
                ]
            },
            "messages.0.role: required; n: not an integer",
        ),
        ({"error": {"message": {"detail": NO}}}, NO),
        ({"error": {"code": 400}, "message": NO}, NO),
        ({"error": {"message": None}}, None),
        ({"detail": []}, None),
        ({"detail": [7, None, "x"]}, "x"),
        ([], None),
        (7, None),
        ({"error": {"message": " \n "}}, None),
    ],
)
def test_each_dialect_is_read(body: Any, reason: str | None) -> None:
    assert reason_in(json.dumps(body).encode(), "served") == reason


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "ContextWindowExceededError: too long. See https://docs.litellm.ai/x?a=1. Shorten it.",
            "ContextWindowExceededError: too long. See [address]. Shorten it.",
        ),
        ("refused (http://10.0.0.5:8000/v1) by 10.0.0.5:8000", "refused ([address]) by [address]"),
        ("redis://user:secret@cache/0 said no", "[address] said no"),
        ("version 1.2.3 is old, 1.2.3.4.5 too", "version 1.2.3 is old, 1.2.3.4.5 too"),
        ("no room in /models/served for it", "no room in the model for it"),
        ("Server is pinned to '/home/op/weights/tiny'.", "Server is pinned to '[path]'."),
        ("cannot read ~/models/a.gguf, C:\\models\\a.gguf", "cannot read [path], [path]"),
        ("no /v1/completions/x; see /messages/0/role and #/$defs/x/y", None),
        ("input and/or output of 3/4/5, a/b/c", None),
    ],
)
def test_addresses_and_paths_are_cut_out_of_a_reason(said: str, shown: str | None) -> None:
    body = json.dumps({"error": {"message": said}}).encode()

    assert reason_in(body, "/models/served") == (shown or said)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>no</html>",
        b"\xff",
        b"[" * 60_000,
        b'{"error":' * 9_000 + b'"x"' + b"}" * 9_000,
        b'{"error": "Traceback (most recent call last): ..."}',
    ],
)
def test_a_body_without_a_reason_shows_none(body: bytes) -> None:
    assert reason_in(body, "served") is None


@pytest.mark.parametrize(
    ("model", "said", "shown"),
    [
        ("m", "upstream said m, m. (m)", "upstream said the model, the model. (the model)"),
        ("tiny", "tiny_2 is not tiny", "tiny_2 is not the model"),
        ("a.b", "axb, a.b and a.b-c", "axb, the model and the model-c"),
        (".*", "what .* is", "what the model is"),
        ("aa", "aaa aa aaaa", "aaa the model aaaa"),
        ("ein", "模型ein不存在", "模型the model不存在"),
        ("", "no such model", "no such model"),
    ],
)
def test_the_models_name_is_replaced_where_it_is_a_word(model: str, said: str, shown: str) -> None:
    assert reason_in(json.dumps({"error": said}).encode(), model) == shown


HOSTILE = [
    *("a://", "a.", "1.", "aaaaaaaaaaaaaaaaaaaa", "://", "http://x!?.", "+/", "-/", "@/", "/+"),
    *("/a", "/a/", "~/a", "C:\\", "C:\\a\\", " /a/b", "m", "m m ", "\t"),
]


@pytest.mark.parametrize("end", ["", "!", "/", "a"])
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_reason_is_read_quickly(piece: str, end: str) -> None:
    """64 KiB of it takes milliseconds; a pattern that backtracks would take minutes."""
    said = "It says " + piece * (64_000 // len(piece)) + end
    body = json.dumps({"detail": said}).encode()

    with within(0.25):
        shown = reason_in(body, "m")

    assert shown is not None
    assert shown.startswith("It")
    assert len(shown) <= 301


@pytest.mark.parametrize(
    "secret",
    [
        *("10.20.30.40:8000", "https://gpu.internal/v1", "/srv/weights/qwen", "C:\\weights\\qwen"),
        "served",
    ],
)
@pytest.mark.parametrize("before", ["http://a.example/" + "b" * 1_900, "word " * 380])
def test_a_reason_that_is_too_long_shows_no_half_of_an_address(before: str, secret: str) -> None:
    """Wherever the text is cut: addresses before the place make it as short as what is shown."""
    for length in range(2_000 - len(before) - len(secret) - 2, 2_000 - len(before) + 2):
        said = f"{before} {'x' * length} {secret} and more" + " more" * 500

        shown = reason_in(json.dumps({"error": said}).encode(), "served")

        assert shown is not None
        rest = shown.replace("[address]", "").replace("[path]", "").replace("the model", "")
        assert not any(part in rest for part in ("10.", "http", "gpu", "srv", "qwen", "serv"))


def test_half_a_trace_is_no_reason_either() -> None:
    said = "x" * 3_000 + " Traceback (most recent call last): ..."

    assert reason_in(json.dumps({"error": said}).encode()) is None


def test_a_reason_in_nested_objects_is_found_to_a_bound() -> None:
    nested: Any = "too long"
    for _ in range(7):
        nested = {"error": nested}

    assert reason_in(json.dumps(nested).encode()) == "too long"
    assert reason_in(json.dumps({"error": {"error": nested}}).encode()) is None


KEY = "sk-0123456789abcdef"
TOKEN = 'a "quoted" token'
HEADERS = {"Authorization": f"Bearer {KEY}", "X-Token": TOKEN, "X-Zone": "prod", "X-No": "1"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"no such key: {KEY}.", "no such key: [secret]."),
        (f"got 'Bearer {KEY}'", "got '[secret]'"),
        (f"got 'bearer {KEY}'", "got 'bearer [secret]'"),
        (f"x{KEY}x", "x[secret]x"),
        (f"X-Token is {TOKEN}", "X-Token is [secret]"),
        (
            f"got {json.dumps(HEADERS)}",
            'got {"Authorization": "[secret]", "X-Token": "[secret]", "X-Zone": "prod", "X-No": "1"}',
        ),
        ("no product in prod has 1 token", "no product in prod has 1 token"),
        (f"no http://a.example/?key={KEY}&host=b here", "no [address] here"),
    ],
)
def test_what_was_sent_in_a_header_is_not_shown(said: str, shown: str) -> None:
    """A value of fewer than 8 characters is no secret, and would cut ordinary words."""
    assert reason_in(json.dumps({"error": said}).encode(), secrets=secrets_in(HEADERS)) == shown


@pytest.mark.parametrize(
    "quote",
    [json.dumps, str, lambda sent: json.dumps(json.dumps(sent))],
    ids=["json", "python", "twice"],
)
def test_the_salt_of_an_organization_is_not_shown(quote: Callable[[dict[str, str]], str]) -> None:
    """vLLM quotes the body in what it says of one that it refuses."""
    salt = salt_of("0190-acme")
    said = f"1 validation error: input: {quote({'model': 'm', 'cache_salt': salt, 'seed': 'x'})}"

    shown = reason_in(json.dumps({"error": {"message": said}}).encode(), "m")

    assert shown is not None
    assert "[secret]" in shown
    assert "seed" in shown
    assert salt[:8] not in shown


def test_a_key_behind_two_spaces_is_a_key() -> None:
    assert secrets_in({"Authorization": "Bearer  sk-0123456789"})[-1] == "sk-0123456789"


def test_no_half_of_a_key_is_shown_where_the_text_is_cut() -> None:
    key = "sk-" + "0123456789" * 40
    secrets = secrets_in({"Authorization": f"Bearer {key}"})
    for length in [*range(150, 310), *range(1500, 2010, 7)]:
        said = "x" * length + " " + key + " more" * 500
        shown = reason_in(json.dumps({"error": said}).encode(), secrets=secrets)

        assert shown is not None
        assert "sk-" not in shown
        assert "0123" not in shown


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "image input is not supported - hint: if this is unexpected, you may need the mmproj",
            "image input is not supported - hint: if this is unexpected, you may need the mmproj",
        ),
        (
            "\n------------\nWhile executing CallExpression at line 47, column 32 in source:\n"
            + "...== 0) %} {{- raise_exception('After the optional system message, con...\n" * 9
            + "                                           ^\n"
            + "Error: Jinja Exception: Only user, system and assistant roles are supported!",
            "Only user, system and assistant roles are supported!",
        ),
        ("Conversation roles must alternate user/assistant/user/assistant/...", ...),
        ("This model does not support tools", ...),
        ("audio input is not supported by this server", ...),
        ("System role not supported", ...),
        ("litellm.InternalServerError: Multimodal inputs are not supported", ...),
        ("the request exceeds the available context size (1024 tokens)", ...),
        ("Your input is longer than the model's context length", ...),
        ("This model's maximum context length is 1024 tokens.", ...),
        ("Context size has been exceeded.", None),
        ("KV cache exhausted: context length exceeded available blocks, retry later", None),
        ("Video decoder device is not supported by driver", None),
        ("The driver does not support video", None),
        ("worker crashed (OOM) on prompt 'images are not supported'", None),
        ('failed on "maximum context length is"', None),
        ("failed on \nError: Jinja Exception: something", None),
        ("CUDA error: operation not supported", None),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", None),
        ("Failed to load the image of the model", None),
        ("Internal Server Error", None),
        ("The system is not supported by this driver", None),
        ('Traceback: File "/x.py": images are not supported', None),
    ],
)
def test_a_server_error_that_calls_the_request_impossible_is_recognized(
    said: str, reason: Any
) -> None:
    body = json.dumps({"error": {"code": 500, "message": said, "type": "server_error"}}).encode()

    assert impossible_in(body, "served") == (said if reason is ... else reason)
