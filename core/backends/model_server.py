"""The columns and checks that chat backends and speech backends share."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from core.backends.validators import BASE_URL, VARIABLE, check_base_url
from core.names import check_name
from core.variables import check_key_variable


def base_url_field(example: str) -> Any:
    """The column of a backend's address; ``example`` is one, for the form."""
    return models.CharField(
        "base URL",
        max_length=300,
        validators=[check_base_url],
        help_text=f"Up to and including /v1, such as {example}.",
    )


def well_formed_address(name: str) -> models.CheckConstraint:
    """The database's own rule for ``base_url``."""
    return models.CheckConstraint(
        condition=Q(base_url__regex=BASE_URL),
        name=name,
        violation_error_message="base_url must be http(s)://host[:port][/path].",
    )


class ModelServer(models.Model):
    """A server behind the gateway: its name, its address, and the variable that holds its key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=80, unique=True)
    base_url = base_url_field("http://10.0.0.5:9000/v1")
    api_key_env = models.CharField(
        "API key variable",
        max_length=100,
        blank=True,
        validators=[RegexValidator(VARIABLE, "Give the name of a variable, not a key.")],
        help_text="Name of the environment variable that holds the backend's key. Empty: no key.",
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        check_base_url(self.base_url)
        self.check_settings()
        super().save(*args, **kwargs)

    def clean(self) -> None:
        """Check a new name, that the variable holds a key, and the settings of the kind of server."""
        super().clean()
        check_name(self.name, self)
        try:
            check_key_variable(self.api_key_env)
        except ValidationError as error:
            raise ValidationError({"api_key_env": error.messages}) from None
        self.check_settings()

    def check_settings(self) -> None:
        """Check what would be sent to another place, or not at all. Raises ``ValidationError``."""
