"""Counts tokens, for the gateway's independent count and for the simulator.

A tokenizer is named by an encoding (``o200k``, ``cl100k``) or by the path of a ``tokenizer.json``
(the Hugging Face format). Nothing is loaded before the first ``load`` of that name.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import msgspec

TOKENS_PER_MESSAGE = 3
"""Tokens that the convention's chat template adds around each message."""
TOKENS_OF_REPLY_PRIMING = 3
"""Tokens that it adds at the end, to make the model begin its reply."""

ENCODINGS: Mapping[str, str] = {
    "o200k": "o200k_base",
    "o200k_base": "o200k_base",
    "cl100k": "cl100k_base",
    "cl100k_base": "cl100k_base",
}


class UnknownTokenizer(ValueError):
    """No tokenizer has this name, or its file cannot be used. The message says which and why."""


class Piece(NamedTuple):
    """A stretch of text that ends where a token and a character end together."""

    text: str
    tokens: int


class Tokenizer(Protocol):
    """Cuts text into tokens. Takes any ``str``; a lone surrogate counts as U+FFFD."""

    def count(self, text: str) -> int:
        """The number of tokens in ``text``; special tokens written in it are plain text."""

    def cut(self, text: str) -> list[Piece]:
        """Cut ``text`` into tokens. Tokens that form one character together are one piece."""

    def pieces(self, text: str) -> list[str]:
        """The texts of ``cut``; joined again they are ``text``."""


@cache
def load(name: str) -> Tokenizer:
    """Load the tokenizer ``name``, once per process.

    Raises ``UnknownTokenizer`` when ``name`` is neither an encoding nor a usable file.
    """
    if encoding := ENCODINGS.get(name):
        return EncodingTokenizer(encoding)
    if name.endswith(".json") or "/" in name:
        return FileTokenizer(Path(name))
    raise UnknownTokenizer(
        f"There is no tokenizer {name!r}. Use {', '.join(ENCODINGS)}, or the path of a tokenizer.json file."
    )


class EncodingTokenizer:
    """A published byte-pair encoding, by the ``bpe-openai`` package."""

    def __init__(self, encoding: str) -> None:
        self._bpe = _bpe_bindings().tokenizer_for_encoding(encoding)

    def count(self, text: str) -> int:
        return int(self._bpe.count(_storable(text)))

    def cut(self, text: str) -> list[Piece]:
        cut: list[Piece] = []
        unfinished: list[int] = []
        for token in self._bpe.encode(_storable(text)):
            unfinished.append(token)
            try:
                characters = self._bpe.decode(unfinished)
            except ValueError:  # the bytes so far end inside a character
                continue
            cut.append(Piece(characters, len(unfinished)))
            unfinished = []
        return cut

    def pieces(self, text: str) -> list[str]:
        return [piece.text for piece in self.cut(text)]


class FileTokenizer:
    """A model's own ``tokenizer.json``, by the ``tokenizers`` package.

    Raises ``UnknownTokenizer`` when the file cannot be read or is not in that format.
    """

    def __init__(self, path: Path) -> None:
        # Only a catalog with such files pays for loading the package.
        from tokenizers import Tokenizer as HuggingFaceTokenizer  # noqa: PLC0415

        try:
            definition = path.read_bytes()
        except OSError as error:
            raise UnknownTokenizer(
                f"The tokenizer file {path} cannot be read: {error.strerror}."
            ) from error
        try:
            self._tokenizer = HuggingFaceTokenizer.from_buffer(definition)
        except Exception as error:  # the package raises no narrower type
            raise UnknownTokenizer(f"{path} is not a tokenizer.json file: {error}.") from error
        # A file may ask for both, for batches; a count needs the whole text.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, text: str) -> int:
        return len(self._spans(_storable(text)))

    def cut(self, text: str) -> list[Piece]:
        text = _storable(text)
        cut: list[Piece] = []
        begin = end = 0
        for token_begin, token_end in self._spans(text):
            if cut and (token_begin < end or token_end <= end):
                end = max(end, token_end)
                cut[-1] = Piece(text[begin:end], cut[-1].tokens + 1)
            else:
                begin, end = end, token_end
                cut.append(Piece(text[begin:end], 1))
        if text[end:]:
            # Normalizers may drop characters at the end; count them to the last token.
            last = cut.pop() if cut else Piece("", 0)
            cut.append(Piece(last.text + text[end:], last.tokens))
        return cut

    def pieces(self, text: str) -> list[str]:
        return [piece.text for piece in self.cut(text)]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        return list(encoded.offsets)


def count_prompt(
    tokenizer: Tokenizer,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> int:
    """Return the documented estimate of a chat prompt, in tokens.

    It is the tokens of every text (role, name, string content or text parts, names and arguments of
    tool calls, ``tool_call_id``), plus 3 for each message, 3 for the reply, and the tokens of the
    tools as compact JSON. ``messages`` and ``tools`` are in the wire format of the inference
    contract; content that is not text is not counted.
    """
    total = TOKENS_OF_REPLY_PRIMING
    for message in messages:
        total += TOKENS_PER_MESSAGE
        total += sum(map(tokenizer.count, _prompt_texts(message)))
    if tools:
        total += tokenizer.count(msgspec.json.encode(tools).decode())
    return total


def _prompt_texts(message: Mapping[str, Any]) -> Iterable[str]:
    texts = [message.get("role"), message.get("name"), message.get("tool_call_id")]
    content = message.get("content")
    if isinstance(content, list):
        texts += [
            part.get("text")
            for part in content
            if isinstance(part, Mapping) and part.get("type") == "text"
        ]
    else:
        texts.append(content)
    texts += _tool_call_texts(message)
    return (text for text in texts if isinstance(text, str))


def _tool_call_texts(message: Mapping[str, Any]) -> list[Any]:
    texts: list[Any] = []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            texts += [function.get("name"), function.get("arguments")]
    return texts


def _storable(text: str) -> str:
    """Replace each lone surrogate by U+FFFD, so that ``text`` can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _bpe_bindings() -> ModuleType:
    """Import the compiled part of ``bpe-openai`` without its Python part.

    Importing the package loads three vocabularies that are not used here (0.1.4: 0.5 s and 65 MB
    for each process; the compiled part alone takes 5 ms).
    """
    name = "bpe_openai._bindings"
    if name in sys.modules:
        return sys.modules[name]
    package = importlib.util.find_spec("bpe_openai")
    spec = importlib.machinery.PathFinder.find_spec(
        name, package.submodule_search_locations if package else None
    )
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("The package bpe-openai is not installed.", name=name)
    module = importlib.util.module_from_spec(spec)
    # A compiled module can be initialised only once, so later imports must find this one.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
