"""The tables of where weights are served, which ``inference.models`` shows to Django."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from svc_project.lib.rules import AT_LEAST_ONE, BASE_URL, VARIABLE, check_base_url, positive


class Backend(models.Model):
    """A model server that speaks the chat-completion convention."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=80, unique=True)
    base_url = models.CharField(
        "base URL",
        max_length=300,
        validators=[check_base_url],
        help_text="Up to and including /v1, such as http://10.0.0.5:9000/v1.",
    )
    api_key_env = models.CharField(
        "API key variable",
        max_length=100,
        blank=True,
        validators=[RegexValidator(VARIABLE, "Give the name of a variable, not a key.")],
        help_text="Name of the environment variable that holds the backend's key. Empty: no key.",
    )
    max_concurrency = models.PositiveIntegerField(
        default=64,
        validators=[AT_LEAST_ONE],
        help_text="Requests that each worker sends to it at once.",
    )
    continuous_usage = models.BooleanField(
        default=False, help_text="It honours stream_options.continuous_usage_stats."
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

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(base_url__regex=BASE_URL),
                name="backend_base_url_well_formed",
                violation_error_message="base_url must be http(s)://host[:port][/path].",
            ),
            positive(
                "backend_figures_positive",
                "max_concurrency",
                "first_byte_seconds",
                "idle_seconds",
                "total_seconds",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        check_base_url(self.base_url)
        super().save(*args, **kwargs)


class Deployment(models.Model):
    """A set of weights, served by a backend under the name that the backend knows it by."""

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
