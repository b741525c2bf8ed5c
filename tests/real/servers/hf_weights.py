"""Run with the Python of ``.venv-transformers``: writes a tiny random Llama to the folder it is given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

_SPECIAL: Final = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
_CONTEXT: Final = 1024
_TEMPLATE: Final = """\
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
_IDS: Final = {"bos_token_id": 1, "eos_token_id": 4, "pad_token_id": 2}


def main() -> None:
    """One layer over the 256 bytes and one merge, the same each time."""
    folder = Path(sys.argv[1])
    tokens = [*_SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), "he"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    bytewise = Tokenizer(models.BPE(vocabulary, [("h", "e")], unk_token="<unk>"))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytewise,
        bos_token="<s>",
        eos_token="<|im_end|>",
        unk_token="<unk>",
        pad_token="</s>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = _TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(20261122)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokens),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=_CONTEXT,
            initializer_range=0.5,
            **_IDS,
        )
    )
    model.generation_config = GenerationConfig(do_sample=True, **_IDS)
    model.save_pretrained(folder)


if __name__ == "__main__":
    main()
