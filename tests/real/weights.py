"""Tiny weights for llama.cpp, made on the spot: random, but the same each time.

A model of one layer over the 256 bytes and one merge, with a chat template that lists tools. What
it says is noise; how the server counts, streams and closes connections is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray

CONTEXT: Final = 65_536
_WIDTH = 32
_HIDDEN = 64
_HEADS = 2
_SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
_TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif -%}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def write_weights(path: Path) -> None:
    """Write the model to ``path`` as GGUF."""
    writer = GGUFWriter(str(path), "llama")
    _describe(writer)
    _tokenize(writer)
    for name, tensor in _tensors().items():
        writer.add_tensor(f"{name}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: GGUFWriter) -> None:
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_HIDDEN)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(_tokens()))
    writer.add_file_type(0)
    writer.add_chat_template(_TEMPLATE)


def _tokenize(writer: GGUFWriter) -> None:
    tokens = _tokens()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in _SPECIAL else 1 for token in tokens])
    writer.add_token_merges(["h e"])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_pad_token_id(2)
    writer.add_eos_token_id(4)
    writer.add_add_bos_token(False)


def _tokens() -> list[str]:
    """The special tokens, one token for each byte as GPT-2 writes it, and the merge."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    written = {byte: chr(byte) for byte in shown}
    written |= {byte: chr(256 + number) for number, byte in enumerate(hidden)}
    return [*_SPECIAL, *(written[byte] for byte in range(256)), "he"]


def _tensors() -> dict[str, NDArray[np.float32]]:
    dice = np.random.default_rng(20261122)

    def noise(*shape: int) -> NDArray[np.float32]:
        return dice.standard_normal(shape, dtype=np.float32) * np.float32(0.5)

    norm, vocabulary = np.ones(_WIDTH, np.float32), len(_tokens())
    return {
        "token_embd": noise(vocabulary, _WIDTH),
        "output": noise(vocabulary, _WIDTH),
        "output_norm": norm,
        "blk.0.attn_norm": norm,
        "blk.0.ffn_norm": norm,
        "blk.0.attn_q": noise(_WIDTH, _WIDTH),
        "blk.0.attn_k": noise(_WIDTH, _WIDTH),
        "blk.0.attn_v": noise(_WIDTH, _WIDTH),
        "blk.0.attn_output": noise(_WIDTH, _WIDTH),
        "blk.0.ffn_gate": noise(_HIDDEN, _WIDTH),
        "blk.0.ffn_up": noise(_HIDDEN, _WIDTH),
        "blk.0.ffn_down": noise(_WIDTH, _HIDDEN),
    }
