"""llm-comply: answers compared with OpenAI's schema of chat completions."""

from __future__ import annotations

from tests.conformance.place import Place
from tests.conformance.results import Result
from tests.conformance.suites.programs import BIN, aimed, ended, json_report


def check(place: Place) -> list[Result]:
    """Run the cases of the chat format."""
    options = (*aimed(place), "--api-key", place.key, "--format", "openai-chat", "--json")
    return [
        Result(case["id"], ended(case["status"]), "; ".join(case.get("errors") or ()))
        for case in json_report([BIN / "llm-comply", *options], place.directory)["results"]
    ]
