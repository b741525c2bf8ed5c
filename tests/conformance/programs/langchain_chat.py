"""LangChain's standard tests of a chat model, for ``ChatOpenAI`` with the gateway behind it.

pytest runs this file in .venv-conformance; ``CONFORMANCE_METHOD`` is the way to structured output.
"""

from __future__ import annotations

import os
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

METHOD = os.environ["CONFORMANCE_METHOD"]


class TestGateway(ChatModelIntegrationTests):  # type: ignore[misc]  # not in this environment
    """The suite with the abilities that the contract gives a text model."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": os.environ["CONFORMANCE_MODEL"],
            "base_url": os.environ["CONFORMANCE_BASE_URL"],
            "api_key": os.environ["CONFORMANCE_KEY"],
            "max_retries": 0,
            "stream_usage": True,
        }

    @property
    def has_tool_choice(self) -> bool:
        return True

    @property
    def structured_output_kwargs(self) -> dict[str, Any]:
        return {"method": METHOD}

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return os.environ["CONFORMANCE_OTHER_MODEL"]
