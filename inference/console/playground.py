"""The playground's page, the check of a request as it is typed, and the receipt of an answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse

from accounts.console.base import ConsoleView
from accounts.console.first_request import inference_url
from accounts.console.sessions import SessionConsumer
from accounts.console.snippets import KEY_VARIABLE, Snippet, chat
from core.errors import (
    ApiError,
    ModelDoesNotSupportStructuredOutput,
    ModelDoesNotSupportTools,
    UnsupportedJsonSchema,
)
from inference import schema_subset
from inference.catalog.catalog import catalog
from inference.catalog.snapshot import PublishedModel
from inference.chat.consumer import ChatCompletionsConsumer
from inference.wire import ChatRequest, model_of, parse_body
from usage.console.requests_page import REQUEST_ID, RowCost
from usage.models import UsageRow


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a request; ``pointer`` leads into its JSON schema."""

    param: str
    message: str
    pointer: str = ""


class PlaygroundPage(ConsoleView):
    """Chat with a model in the browser."""

    section = "playground"

    def get(self, request: HttpRequest) -> HttpResponse:
        now = time.time()
        models = [
            model
            for _, model in sorted(catalog.current().models.items())
            if not model.is_retired(now) and model.deployments
        ]
        return self.page(
            "console/playground.html",
            models=models,
            # One that is not served is named by the page, and no other is chosen for it.
            asked=request.GET.get("model", ""),
            first=next((model.id for model in models if model.superseded_by is None), ""),
            variable=KEY_VARIABLE,
        )


class CheckView(ConsoleView):
    """Checks a request body and returns it as code, in JSON; sends nothing to a model."""

    http_method_names: list[str] = ["post"]  # noqa: RUF012  # as Django declares it

    def post(self, request: HttpRequest) -> HttpResponse:
        snippets: tuple[Snippet, ...] = ()
        try:
            fields = parse_body(request.body)
        except ApiError as error:
            problems = [Problem(error.param or "", error.message)]
        else:
            problems = _problems(fields)
            snippets = chat(inference_url(request), fields)
        return JsonResponse(
            {
                "problems": [
                    {"param": each.param, "message": each.message, "pointer": each.pointer}
                    for each in problems
                ],
                "snippets": {each.name: each.code for each in snippets},
            }
        )


class ReceiptView(ConsoleView):
    """The tokens, cost and times of one request of the organization, as a part of a page."""

    def get(self, request: HttpRequest, request_id: str) -> HttpResponse:
        row = None
        if REQUEST_ID.fullmatch(request_id):
            row = UsageRow.objects.filter(
                organization_id=self.organization.pk, request_id=request_id
            ).first()
        if row is None:
            raise Http404
        return self.page("console/_receipt.html", row=row, cost=RowCost.of(row))


def _problems(fields: dict[str, Any]) -> list[Problem]:
    """The problems that the API would answer with, every one of the JSON schema among them."""
    try:
        catalog.current()
        model = catalog.resolve(model_of(fields), time.time())
        parsed = ChatRequest.from_fields(fields)
        _check_abilities(parsed, model)
        if (named := parsed.json_schema) is not None:
            schema_subset.check(named.schema, named.name, strict=named.strict)
        # The API takes such a cap, and a model never reaches it.
        if (cap := parsed.output_cap) and cap > model.context_length:
            most = f"{model.id} has a context of {model.context_length:,} tokens"
            return [Problem("max_tokens", f"{cap:,} output tokens do not fit: {most}.")]
    except UnsupportedJsonSchema as error:
        return [
            Problem("response_format", each["message"], each["pointer"])
            for each in error.extra["violations"]
        ]
    except ApiError as error:
        return [Problem(error.param or "", error.message)]
    return []


def _check_abilities(parsed: ChatRequest, model: PublishedModel) -> None:
    if parsed.is_tool_request and not model.tool_calling:
        raise ModelDoesNotSupportTools(f"{model.id} does not support tool calling.")
    if parsed.json_schema is not None and not model.structured_output:
        raise ModelDoesNotSupportStructuredOutput(f"{model.id} does not support JSON schemas.")


class PlaygroundConsumer(SessionConsumer, ChatCompletionsConsumer):
    """``POST /console/playground/chat``: body, answer, limits and row are those of the API.

    Only the caller differs: the organization that the session shows, without a key.
    """

    route: ClassVar[str] = "playground"
