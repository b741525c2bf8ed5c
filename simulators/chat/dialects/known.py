"""The dialects by the names that ``dialect=`` takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from simulators.chat.dialects.definition import Dialect
from simulators.chat.dialects.llama_cpp import LLAMA_CPP, LLAMA_CPP_2024
from simulators.chat.dialects.lm_studio import LM_STUDIO
from simulators.chat.dialects.ollama import OLLAMA, OLLAMA_2024
from simulators.chat.dialects.sglang import SGLANG
from simulators.chat.dialects.vllm import VLLM, VLLM_0_9

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "vllm": VLLM,
        "vllm-0.9": VLLM_0_9,
        "sglang": SGLANG,
        "ollama": OLLAMA,
        "ollama-2024": OLLAMA_2024,
        "lm-studio": LM_STUDIO,
        "llama.cpp": LLAMA_CPP,
        "llama.cpp-2024": LLAMA_CPP_2024,
    }
)


def parse_dialect(name: str) -> Dialect | None:
    """The dialect called ``name``; None for ``none``. Raises ``ValueError`` with a message for people."""
    if name == "none":
        return None
    try:
        return DIALECTS[name]
    except KeyError:
        known = ", ".join(DIALECTS)
        raise ValueError(f"There is no dialect {name!r}. Use one of {known}.") from None
