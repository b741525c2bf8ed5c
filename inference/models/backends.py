"""The tables of backends and deployments; ``inference.models`` exports them to Django."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from core.backends.model_server import ModelServer, well_formed_address
from core.backends.validators import AT_LEAST_ONE, positive
from inference.wire import ChatRequest, defaults
from inference.wire.dialects import KeepAlive, OutputCapField, PrefixCache, RunningUsage

MOST_HEADERS: Final = 20
LONGEST_HEADER: Final = 1000
LARGEST_FIELDS: Final = 16_384
"""Bytes of JSON."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_FRAMING: Final = frozenset(
    (
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
_SET_ELSEWHERE: Final = {
    "timings_per_token": "running_usage",
    "max_tokens": "output_cap_field",
    "max_completion_tokens": "output_cap_field",
    "cache_salt": "prefix_cache",
}
_MODELLED: Final = frozenset(ChatRequest.__struct_fields__)


def check_headers(headers: object) -> dict[str, str]:
    """Check ``headers`` and return them; None becomes an empty table.

    Raises ``ValidationError`` for anything but a table of strings, for a name or value that HTTP
    does not allow, and for headers that the gateway itself sets.
    """
    table = _table(headers)
    if len(table) > MOST_HEADERS:
        raise ValidationError(f"Give at most {MOST_HEADERS} headers.")
    if len({name.lower() for name in table}) < len(table):
        raise ValidationError("A header is given twice; upper and lower case are the same.")
    for name, value in table.items():
        _check_header(name, value)
    return table


def check_extra_fields(fields: object) -> dict[str, Any]:
    """Check ``fields`` and return them; None becomes an empty table.

    Raises ``ValidationError`` for anything but a table, for values without a JSON form, for too
    large a table, and for fields that callers or other settings of the backend set.
    """
    table = _table(fields)
    for name in table:
        if name in _SET_ELSEWHERE:
            raise ValidationError(f"Leave {name} out; {_SET_ELSEWHERE[name]} decides about it.")
        if name in _MODELLED:
            raise ValidationError(f"Leave {name} out; it comes with each request.")
    _check_json(table)
    return table


def check_defaults(values: object) -> dict[str, Any]:
    """Check ``values`` of fields that a caller left out; None becomes an empty table.

    Raises ``ValidationError`` for a field that has no default, and for what would be refused of a caller.
    """
    table = _table(values)
    _check_json(table)
    if found := defaults.problem(table):
        raise ValidationError(found)
    return table


def check_each(row: models.Model, checks: Mapping[str, Callable[[object], dict[str, Any]]]) -> None:
    """Check the columns of ``row`` and set them. Raises ``ValidationError`` that names each wrong one."""
    wrong = {}
    for name, check in checks.items():
        try:
            setattr(row, name, check(getattr(row, name)))
        except ValidationError as error:
            wrong[name] = error.messages
    if wrong:
        raise ValidationError(wrong)


def _check_json(table: dict[str, Any]) -> None:
    try:
        # ensure_ascii=False, so that a lone surrogate, which UTF-8 cannot encode, raises here.
        text = json.dumps(table, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise ValidationError("Use text, finite numbers, true, false, lists and tables.") from None
    if b"\\u0000" in text:
        raise ValidationError("Leave the character U+0000 out.")
    if len(text) > LARGEST_FIELDS:
        raise ValidationError(f"Give at most {LARGEST_FIELDS} bytes of JSON.")


def _table(given: object) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValidationError("Give a table (a JSON object).")
    return given


def _check_header(name: str, value: object) -> None:
    lowered = name.lower()
    if not _TOKEN.fullmatch(name):
        raise ValidationError(f"{name[:100]!r} is not a valid header name.")
    if lowered == "authorization":
        raise ValidationError("Leave Authorization out; api_key_env names the backend's key.")
    if lowered in _FRAMING or lowered.startswith("proxy-"):
        raise ValidationError(f"Leave {name} out; the gateway sets or refuses it itself.")
    if not isinstance(value, str) or len(value) > LONGEST_HEADER or not _VALUE.fullmatch(value):
        raise ValidationError(
            f"Give {name} as 1 to {LONGEST_HEADER} printable ASCII characters, without a blank at "
            "the beginning or end."
        )


class Backend(ModelServer):
    """A model server that speaks the chat-completion convention."""

    max_concurrency = models.PositiveIntegerField(
        default=64,
        validators=[AT_LEAST_ONE],
        help_text="Requests that it gets at once, from all workers and hosts together.",
    )
    running_usage = models.CharField(
        max_length=16,
        choices=[
            (RunningUsage.AUTO.value, "auto: learnt from its first streams"),
            (RunningUsage.NONE.value, "none"),
            (RunningUsage.VLLM.value, "vllm: stream_options.continuous_usage_stats"),
            (RunningUsage.LLAMA_CPP.value, "llama.cpp: timings_per_token"),
        ],
        default=RunningUsage.AUTO.value,
        help_text="How the server reports usage during a stream. For SGLang choose vLLM. Choose a "
        "dialect, or none, only where the server's answers to unknown fields mislead auto.",
    )
    output_cap_field = models.CharField(
        max_length=24,
        choices=[
            (OutputCapField.BOTH.value, "both: max_tokens and max_completion_tokens"),
            (OutputCapField.MAX_TOKENS.value, "max_tokens"),
            (OutputCapField.MAX_COMPLETION_TOKENS.value, "max_completion_tokens"),
        ],
        default=OutputCapField.BOTH.value,
        help_text="What it calls the most tokens to generate. Choose one where a server refuses "
        "the other.",
    )
    headers = models.JSONField(
        default=dict,
        blank=True,
        help_text='Sent with each request, such as {"x-portkey-provider": "openai"}. Not for '
        "secrets: they are shown here, and kept in the audit log.",
    )
    extra_fields = models.JSONField(
        default=dict,
        blank=True,
        help_text='Added to the body of each request, such as {"top_k": 40}.',
    )
    keep_alive = models.CharField(
        max_length=8,
        choices=[
            (KeepAlive.AUTO.value, "auto: connections are used again, where the server keeps them"),
            (KeepAlive.OFF.value, "off: a new connection for each request"),
        ],
        default=KeepAlive.AUTO.value,
    )
    prefix_cache = models.CharField(
        max_length=16,
        choices=[
            (PrefixCache.SHARED.value, "shared: no cache_salt is sent"),
            (PrefixCache.ORGANIZATION.value, "organization: a cache_salt for each organization"),
            (PrefixCache.NONE.value, "none: a random cache_salt for each request"),
        ],
        default=PrefixCache.SHARED.value,
        db_default=PrefixCache.SHARED.value,
        help_text="Who shares what the server keeps of prompts. Where organizations share it, one "
        "can measure whether another sent the same beginning. For vLLM choose organization; a "
        "server that does not know cache_salt ignores or refuses it.",
    )
    enabled = models.BooleanField(default=True)
    first_byte_seconds = models.FloatField(
        null=True, blank=True, help_text="Empty: SVC_BACKEND_FIRST_BYTE_SECONDS."
    )
    idle_seconds = models.FloatField(
        null=True, blank=True, help_text="Empty: SVC_BACKEND_IDLE_SECONDS."
    )
    total_seconds = models.FloatField(
        null=True, blank=True, help_text="Empty: SVC_BACKEND_TOTAL_SECONDS."
    )
    disconnect_drain_seconds = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Seconds for which an answer is still read for its usage after the client "
        "disconnected, unless usage is reported during streams. 0: not at all. Empty: SVC_DISCONNECT_DRAIN_SECONDS.",
    )

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            well_formed_address("backend_base_url_well_formed"),
            positive(
                "backend_figures_positive",
                "max_concurrency",
                "first_byte_seconds",
                "idle_seconds",
                "total_seconds",
            ),
            models.CheckConstraint(
                condition=Q(disconnect_drain_seconds__isnull=True)
                | Q(disconnect_drain_seconds__gte=0),
                name="backend_disconnect_drain_not_negative",
            ),
        ]

    def check_settings(self) -> None:
        """Refuse added fields that cannot be sent, or that the client or the gateway sets."""
        check_each(self, {"headers": check_headers, "extra_fields": check_extra_fields})


EQUAL_WEIGHT: Final = 100
_NO_WEIGHT: Final = "A weight is at least 1. Drain the deployment to send it nothing new."


class Deployment(models.Model):
    """A set of weights on a backend, and the backend's name for it."""

    weights = models.ForeignKey(
        "WeightsRecord", on_delete=models.CASCADE, related_name="deployments"
    )
    backend = models.ForeignKey(Backend, on_delete=models.PROTECT, related_name="deployments")
    model = models.CharField("name on the backend", max_length=200)
    enabled = models.BooleanField(default=True)
    weight = models.PositiveIntegerField(
        default=EQUAL_WEIGHT,
        db_default=EQUAL_WEIGHT,
        validators=[MinValueValidator(1, _NO_WEIGHT)],
        help_text="Its share of new conversations, beside the other backends of these weights. "
        "Where all are equal, each gets what costs least there.",
    )
    draining = models.BooleanField(
        default=False,
        db_default=False,
        help_text="It gets no new requests; those that run there end.",
    )

    class Meta:
        ordering: ClassVar[list[str]] = ["weights", "backend"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["weights", "backend"], name="deployment_once"),
            models.CheckConstraint(condition=~Q(model=""), name="deployment_named"),
            models.CheckConstraint(
                condition=Q(weight__gte=1),
                name="deployment_weight_positive",
                violation_error_message=_NO_WEIGHT,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.weights} on {self.backend}"
