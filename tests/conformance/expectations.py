"""Cases of the suites that do not pass, each with the section of the contract that they touch."""

from __future__ import annotations

from enum import Enum
from typing import Final

from tests.conformance.results import Expectation, Outcome


class Section(Enum):
    """The sections of the contract, each with the page and the heading that tell callers of it."""

    SERVICE = ("What the service does", "api/inference.md", "The inference API")
    CHAT = ("POST /v1/chat/completions", "api/inference.md", "Fields")
    SUBSET = ("Structured-output schema subset", "api/schema-subset.md", "Rules")
    CATALOG = ("Model entry (catalog)", "api/inference.md", "Catalog")
    VOICES = ("Voice clone", "api/speech.md", "Deleting")

    def __init__(self, title: str, page: str, heading: str) -> None:
        self.title = title
        """The heading of the contract."""
        self.page = page
        """The page under docs/."""
        self.heading = heading
        """The heading on that page."""


def _failing(suite: str, cases: str, section: Section, reason: str) -> Expectation:
    return Expectation(suite, cases, Outcome.FAILED, section.name, reason)


def _skipped(suite: str, cases: str, section: Section, reason: str) -> Expectation:
    return Expectation(suite, cases, Outcome.SKIPPED, section.name, reason)


_LOOSE: Final = (
    "LangChain's schema lacks `additionalProperties: false`, or an optional field is not required; "
    "the subset demands both of every object, with and without `strict`"
)
_STORED: Final = "Stored completions do not exist: only creating one does"

EXPECTATIONS: Final = (
    *(
        _failing("langchain", f"json_schema: test_structured_output{case}", Section.SUBSET, _LOOSE)
        for case in ("*[typeddict]", "*[json_schema]", "_pydantic_2_v1", "_optional_param")
    ),
    *(
        _skipped(
            "langchain",
            f"function_calling: {case}",
            Section.SERVICE,
            "The catalog is text-only: no model serves images, audio or PDF files",
        )
        for case in ("test_pdf_*", "test_audio_inputs", "test_image_*")
    ),
    _skipped(
        "langchain",
        "function_calling: test_stream_time",
        Section.SERVICE,
        "The suite times recorded answers here, and there is nothing of the service in them",
    ),
    _skipped(
        "provider-check",
        "catalog.declared-v2",
        Section.CATALOG,
        "The service has one catalog, in the contract's form, and none in the router's own",
    ),
    _skipped(
        "llm-comply",
        "chat-reasoning-summary",
        Section.CHAT,
        "`reasoning` is no field of the service and is dropped; the suite asks models named like OpenAI's only",
    ),
    _failing(
        "compatcanary",
        "modern: responses.*",
        Section.SERVICE,
        "A responses endpoint does not exist",
    ),
    _failing(
        "openai-python",
        "as written: *_create_with_all_params_*",
        Section.CHAT,
        "Caps of 0 are not positive, and `foo` is no token id; with valid values the same tests pass",
    ),
    *(
        _failing(
            "openai-python",
            f"as written: Test*Completions::test_{how}_{what}",
            Section.SERVICE,
            _STORED,
        )
        for how in ("method", "raw_response", "streaming_response")
        for what in ("retrieve[*", "update[*", "list[*", "delete[*")
    ),
    _failing(
        "openai-python",
        "as written: Test*Completions::test_method_list_with_all_params*",
        Section.SERVICE,
        _STORED,
    ),
    *(
        _failing("openai-python", f"{where}: Test*Models::test_{how}_delete[*", section, reason)
        for how in ("method", "raw_response", "streaming_response")
        for where, section, reason in (
            ("as written", Section.CATALOG, "Callers cannot delete a published model"),
            ("speech", Section.VOICES, "A clone is deleted at `/v1/voices`, a global voice never"),
        )
    ),
)
"""Everything that does not pass and is meant so. What is not here has to pass."""


def of(suite: str) -> list[Expectation]:
    """Return the expectations of one suite."""
    return [each for each in EXPECTATIONS if each.suite == suite]
