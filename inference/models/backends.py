"""The tables of backends and deployments; ``inference.models`` exports them to Django."""

from __future__ import annotations

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from inference.models.backend_extras import check_extra_fields, check_headers
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage
from svc_project.lib.backends.model_server import ModelServer, well_formed_address
from svc_project.lib.backends.validators import AT_LEAST_ONE, positive


class Backend(ModelServer):
    """A model server that speaks the chat-completion convention."""

    max_concurrency = models.PositiveIntegerField(
        default=64,
        validators=[AT_LEAST_ONE],
        help_text="Requests that each worker sends to it at once.",
    )
    running_usage = models.CharField(
        max_length=16,
        choices=[
            (RunningUsage.NONE.value, "none"),
            (RunningUsage.VLLM.value, "vllm: stream_options.continuous_usage_stats"),
            (RunningUsage.LLAMA_CPP.value, "llama.cpp: timings_per_token"),
        ],
        default=RunningUsage.NONE.value,
        help_text="How it reports token figures while a stream runs. SGLang does as vLLM.",
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
        help_text="How long an answer is read on for its figures when the client has left, unless "
        "there are running ones. 0: not at all. Empty: SVC_DISCONNECT_DRAIN_SECONDS.",
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
        for name, check in (("headers", check_headers), ("extra_fields", check_extra_fields)):
            try:
                setattr(self, name, check(getattr(self, name)))
            except ValidationError as error:
                raise ValidationError({name: error.messages}) from None


class Deployment(models.Model):
    """A set of weights on a backend, and the backend's name for it."""

    weights = models.ForeignKey(
        "WeightsRecord", on_delete=models.CASCADE, related_name="deployments"
    )
    backend = models.ForeignKey(Backend, on_delete=models.PROTECT, related_name="deployments")
    model = models.CharField("name on the backend", max_length=200)
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["weights", "backend"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["weights", "backend"], name="deployment_once"),
            models.CheckConstraint(condition=~Q(model=""), name="deployment_named"),
        ]

    def __str__(self) -> str:
        return f"{self.weights} on {self.backend}"
