"""Tokenizers count and cut text, and estimate prompts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as HuggingFaceTokenizer
from tokenizers import decoders, models, pre_tokenizers, trainers

from inference.chat.tokenizers import Tokenizer, UnknownTokenizer, count_prompt, load

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a small byte-level tokenizer like those of models, with truncation switched on."""
    tokenizer = HuggingFaceTokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(["the cat sat on the mat"] * 10, trainer)
    tokenizer.enable_truncation(5)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="module", params=["o200k", "cl100k_base", "file"])
def tokenizer(request: pytest.FixtureRequest, tokenizer_file: Path) -> Tokenizer:
    return load(str(tokenizer_file) if request.param == "file" else request.param)


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("o200k_base", "hello world", 2),
        ("cl100k_base", "tiktoken is great!", 6),
        ("o200k", "नमस्ते", 4),
        ("o200k", "", 0),
    ],
)
def test_published_encodings_count_as_published(name: str, text: str, tokens: int) -> None:
    assert load(name).count(text) == tokens


def test_a_special_token_in_a_text_is_plain_text() -> None:
    assert load("o200k").count("<|endoftext|>") > 1


@given(text=ANY_TEXT)
@settings(max_examples=150, deadline=None)
def test_pieces_joined_are_the_text_and_their_tokens_are_its_count(
    tokenizer: Tokenizer, text: str
) -> None:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    cut = tokenizer.cut(text)
    assert "".join(piece.text for piece in cut) == whole
    assert tokenizer.pieces(text) == [piece.text for piece in cut]
    assert sum(piece.tokens for piece in cut) == tokenizer.count(text)


def test_tokens_that_make_one_character_are_one_piece(tokenizer: Tokenizer) -> None:
    (piece,) = tokenizer.cut("🧿")
    assert (piece.text, piece.tokens) == ("🧿", tokenizer.count("🧿"))
    assert piece.tokens > 1


def test_a_lone_surrogate_counts_as_the_replacement_character(tokenizer: Tokenizer) -> None:
    assert tokenizer.count("a\ud800b") == tokenizer.count("a\ufffdb")


def test_a_file_with_truncation_still_counts_the_whole_text(tokenizer_file: Path) -> None:
    assert load(str(tokenizer_file)).count("x" * 50) == 50


def test_a_name_loads_once(tokenizer_file: Path) -> None:
    assert load("o200k") is load("o200k")
    assert load(str(tokenizer_file)) is load(str(tokenizer_file))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gpt9", r"no tokenizer 'gpt9'.*o200k_base.*tokenizer\.json"),
        ("{}/tokenizer.json", "cannot be read: No such file"),
        ("{}/other.json", r"is not a tokenizer\.json file"),
    ],
)
def test_what_is_no_tokenizer_is_refused_with_the_reason(
    tmp_path: Path, name: str, told: str
) -> None:
    (tmp_path / "other.json").write_text('{"hello": 1}')
    with pytest.raises(UnknownTokenizer, match=told):
        load(name.format(tmp_path))


def test_importing_loads_no_vocabulary_and_no_tokenizer_package() -> None:
    program = (
        "import sys, inference.chat.tokenizers;"
        "sys.exit(any(name.startswith(('bpe_openai', 'tokenizers')) for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_package_of_the_encodings_can_still_be_imported_afterwards() -> None:
    program = (
        "from inference.chat.tokenizers import load; count = load('o200k').count('hello world');"
        "from bpe_openai import _bindings;"
        "assert _bindings.tokenizer_for_encoding('o200k_base').count('hello world') == count"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_prompt_is_its_texts_and_three_for_each_message_and_for_the_reply() -> None:
    tokenizer = load("o200k")
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"at":1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "a cat"},
    ]
    texts = [
        *("system", "Be brief.", "user", "ann", "What is this?"),
        *("assistant", "look", '{"at":1}', "tool", "c", "a cat"),
    ]
    assert count_prompt(tokenizer, messages) == sum(map(tokenizer.count, texts)) + 4 * 3 + 3


def test_tools_count_as_their_compact_json() -> None:
    tokenizer = load("o200k")
    messages = [{"role": "user", "content": "hi"}]
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    text = '[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]'
    assert msgspec.json.decode(text) == tools
    without = count_prompt(tokenizer, messages)
    assert count_prompt(tokenizer, messages, tools) == without + tokenizer.count(text)
    assert count_prompt(tokenizer, messages, []) == without


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": 7, "content": {"a": 1}, "tool_calls": 5},
        {"content": [1, {"type": "text", "text": 2}], "tool_calls": [3, {"function": "f"}]},
    ],
)
def test_content_that_is_not_text_is_not_counted(message: dict[str, Any]) -> None:
    assert count_prompt(load("o200k"), [message]) == 3 + 3
