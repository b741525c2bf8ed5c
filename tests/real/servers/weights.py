"""Tiny weights for llama.cpp, made on the spot, the same each time.

Both models have one layer over the 256 bytes and a chat template that lists tools. What the one
says is noise, whatever it is asked; the other says one text, word for word, and ends. How the
server counts, streams, parses and closes connections is real with either.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray

CONTEXT: Final = 65_536
_HEADS = 2
_SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
_END = _SPECIAL.index("<|im_end|>")
_MERGED = "he"
_PLAIN_TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif -%}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
_HERMES_TEMPLATE = """\
{%- if tools %}<|im_start|>system
Call tools as <tool_call>
{"name": <name>, "arguments": <object>}
</tool_call>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif -%}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content or "" }}{% for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@dataclass(frozen=True)
class _Weights:
    """One model: its tokens after the special ones, its template, its tensors by name."""

    tokens: list[str]
    template: str
    width: int
    hidden: int
    layers: int
    tensors: dict[str, NDArray[np.float32]]


def write_noise(path: Path) -> None:
    """Write a model that says random bytes to ``path``, as GGUF."""
    tokens = [*_SPECIAL, *map(_written, range(256)), _MERGED]
    width, hidden = 32, 64
    dice = np.random.default_rng(20261122)

    def noise(*shape: int) -> NDArray[np.float32]:
        return dice.standard_normal(shape, dtype=np.float32) * np.float32(0.5)

    norm = np.ones(width, np.float32)
    tensors = {
        "token_embd": noise(len(tokens), width),
        "output": noise(len(tokens), width),
        "output_norm": norm,
        "blk.0.attn_norm": norm,
        "blk.0.ffn_norm": norm,
        "blk.0.attn_q": noise(width, width),
        "blk.0.attn_k": noise(width, width),
        "blk.0.attn_v": noise(width, width),
        "blk.0.attn_output": noise(width, width),
        "blk.0.ffn_gate": noise(hidden, width),
        "blk.0.ffn_up": noise(hidden, width),
        "blk.0.ffn_down": noise(width, hidden),
    }
    _write(path, _Weights(tokens, _PLAIN_TEMPLATE, width, hidden, 1, tensors))


def write_speaker(path: Path, text: str, width: int = 128, layers: int = 1) -> int:
    """Write a model that answers everything with ``text`` to ``path``, as GGUF.

    Returns how many tokens the answer has, the end token included. A wider one with more layers computes
    longer and says the same. The layers add nothing, so a
    token alone decides what follows it: the line break at the end of each prompt is followed by
    the first piece of the text, a piece by the next one, the last by the end.
    """
    pieces = _pieces(text)
    tokens = [*_SPECIAL, *map(_written, range(256)), _MERGED, *pieces]
    hidden = width // 4
    dice = np.random.default_rng(20261122)
    embeddings = dice.standard_normal((len(tokens), width), dtype=np.float32)
    chain = [tokens.index(_written(ord("\n"))), *map(tokens.index, pieces), _END]
    output = np.zeros_like(embeddings)
    for token, following in pairwise(chain):
        output[following] = embeddings[token]
    norm, nothing = np.ones(width, np.float32), np.zeros((width, width), np.float32)
    layer = {
        "attn_norm": norm,
        "ffn_norm": norm,
        **{f"attn_{part}": nothing for part in ("q", "k", "v", "output")},
        "ffn_gate": np.zeros((hidden, width), np.float32),
        "ffn_up": np.zeros((hidden, width), np.float32),
        "ffn_down": np.zeros((width, hidden), np.float32),
    }
    tensors = {"token_embd": embeddings, "output": output, "output_norm": norm}
    tensors |= {f"blk.{at}.{name}": each for at in range(layers) for name, each in layer.items()}
    _write(path, _Weights(tokens, _HERMES_TEMPLATE, width, hidden, layers, tensors))
    return len(pieces) + 1


def _pieces(text: str) -> list[str]:
    """``text`` cut into tokens of two bytes or more, each of them once, wherever a character is cut."""
    found: list[str] = []
    content, start = text.encode(), 0
    while start < len(content):
        left = len(content) - start
        size = left if left <= 3 else 2
        while (piece := "".join(map(_written, content[start : start + size]))) in [_MERGED, *found]:
            size += 1
            assert size <= left, "the end of the text repeats an earlier piece"
        found.append(piece)
        start += size
    return found


def _written(byte: int) -> str:
    """A byte as GPT-2's vocabulary writes it: visible ones as they are, the others from 256 on."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if byte in shown:
        return chr(byte)
    return chr(256 + [each for each in range(256) if each not in shown].index(byte))


def _write(path: Path, weights: _Weights) -> None:
    writer = GGUFWriter(str(path), "llama")
    _describe(writer, weights)
    _tokenize(writer, weights.tokens)
    for name, tensor in weights.tensors.items():
        writer.add_tensor(f"{name}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: GGUFWriter, weights: _Weights) -> None:
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(weights.width)
    writer.add_block_count(weights.layers)
    writer.add_feed_forward_length(weights.hidden)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(weights.width // _HEADS)
    writer.add_vocab_size(len(weights.tokens))
    writer.add_file_type(0)
    writer.add_chat_template(weights.template)


def _tokenize(writer: GGUFWriter, tokens: list[str]) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in _SPECIAL else 1 for token in tokens])
    writer.add_token_merges([" ".join(_MERGED)])
    writer.add_unk_token_id(_SPECIAL.index("<unk>"))
    writer.add_bos_token_id(_SPECIAL.index("<s>"))
    writer.add_pad_token_id(_SPECIAL.index("</s>"))
    writer.add_eos_token_id(_END)
    writer.add_add_bos_token(False)
