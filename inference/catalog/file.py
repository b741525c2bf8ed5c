"""The chat tables of a catalog: parses and checks a file (TOML) or JSON values, without the database.

docs/operate/catalog.md, "The catalog file", describes every table and key.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime, time
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from core.catalog_tables import CatalogFileError, Table, require_unique, shape_error
from inference.models.backends import EQUAL_WEIGHT
from inference.wire.dialects import KeepAlive, OutputCapField, PrefixCache, RunningUsage

AwareDatetime = Annotated[datetime, msgspec.Meta(tz=True)]


class BackendTable(Table, frozen=True):
    """A ``[[backends]]`` table."""

    name: str
    base_url: str
    api_key_env: str = ""
    max_concurrency: int = 64
    continuous_usage: bool | UnsetType = UNSET
    running_usage: RunningUsage | None = None
    output_cap_field: OutputCapField = OutputCapField.BOTH
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    extra_fields: dict[str, Any] = msgspec.field(default_factory=dict)
    keep_alive: KeepAlive = KeepAlive.AUTO
    prefix_cache: PrefixCache = PrefixCache.SHARED
    enabled: bool = True
    first_byte_seconds: float | None = None
    idle_seconds: float | None = None
    total_seconds: float | None = None
    disconnect_drain_seconds: float | None = None

    @property
    def dialect(self) -> RunningUsage:
        """``running_usage``, or its value according to the older key ``continuous_usage``."""
        if self.running_usage is not None:
            return self.running_usage
        if self.continuous_usage is UNSET:
            return RunningUsage.AUTO
        return RunningUsage.VLLM if self.continuous_usage else RunningUsage.NONE


class DeploymentTable(Table, frozen=True):
    """One item of a model's ``backends``: a backend, and the model's name there.

    A ``draining`` that is left out stays as it is: draining is work in progress, not configuration.
    """

    name: str
    model: str
    weight: int = EQUAL_WEIGHT
    draining: bool | None = None


class PricingTable(Table, frozen=True):
    """A model's ``pricing``: decimals in quotes, so that money is never a float."""

    input_per_mtok: str
    output_per_mtok: str
    currency: str


class LimitTable(Table, frozen=True):
    """One item of a model's ``limits``: an organization, and its own limits on the model."""

    organization: str
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class ModelTable(Table, frozen=True):
    """A ``[[models]]`` table. ``limits`` that are left out stay as they are."""

    id: str
    weights: str
    backends: list[DeploymentTable]
    context_length: int
    max_request_bytes: int
    default_max_output_tokens: int
    pricing: PricingTable | None = None
    tokenizer: str | None = None
    tool_calling: bool = False
    structured_output: bool = False
    extra_fields: dict[str, Any] = msgspec.field(default_factory=dict)
    defaults: dict[str, Any] = msgspec.field(default_factory=dict)
    keep_alive_seconds: float | None = None
    limits: list[LimitTable] | None = None
    published: bool = False
    superseded_by: str | None = None
    shutdown_at: AwareDatetime | None = None


class CatalogFile(Table, frozen=True):
    """A whole file. ``speech.voices.load`` parses the speech tables."""

    backends: list[BackendTable] = msgspec.field(default_factory=list)
    models: list[ModelTable] = msgspec.field(default_factory=list)
    voices: list[dict[str, Any]] = msgspec.field(default_factory=list)
    speech_backends: list[dict[str, Any]] = msgspec.field(default_factory=list)


File = TypeVar("File", bound=CatalogFile)

_TIMES_OF_TOML: Final = (datetime, date, time)
"""Types that TOML has of its own, so that text is none of them."""


def read_catalog_file(content: bytes, kind: type[File]) -> File:
    """Parse and check ``content`` (TOML), whose tables are those of ``kind``.

    Raises ``CatalogFileError`` for TOML that does not parse, an unknown or missing key, a value of
    the wrong type, a name given twice, and for keys that contradict each other.
    """
    try:
        found = msgspec.toml.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        # Besides what is no TOML: tables too deep, and integers of more than 4300 digits.
        raise CatalogFileError("", f"This is not TOML: {error}.") from None
    return _checked(found, kind, _TIMES_OF_TOML)


def read_catalog_values(found: object) -> CatalogFile:
    """Check a catalog that was read from JSON, where a date is text. Raises as ``read_catalog_file``."""
    return _checked(found, CatalogFile, ())


def _checked(found: object, kind: type[File], builtin_types: Iterable[type]) -> File:
    try:
        file = msgspec.convert(found, kind, builtin_types=builtin_types)
    except msgspec.ValidationError as error:
        raise shape_error(str(error)) from None
    _refuse_unstorable(found)
    require_unique([table.name for table in file.backends], "backends", "name")
    require_unique([table.id for table in file.models], "models", "id")
    for index, backend in enumerate(file.backends):
        _check_backend(backend, f"backends[{index}]")
    for index, model in enumerate(file.models):
        _check_model(model, f"models[{index}]")
    _check_shared_weights(file.models)
    return file


def _refuse_unstorable(found: object) -> None:
    """Raise ``CatalogFileError`` for the character that PostgreSQL cannot store, and for ``nan`` and ``inf``.

    TOML has these two and JSON has not; SQLite stores ``nan`` as no number at all.
    """
    waiting = [("", found)]
    while waiting:
        where, each = waiting.pop()
        if isinstance(each, dict):
            waiting += [("", name) for name in each]
            waiting += [(f"{where}.{name}".lstrip("."), value) for name, value in each.items()]
        elif isinstance(each, list):
            waiting += [(f"{where}[{index}]", value) for index, value in enumerate(each)]
        elif isinstance(each, str) and "\0" in each:
            raise CatalogFileError(where, "It holds a null character. Leave it out.")
        elif isinstance(each, float) and not math.isfinite(each):
            raise CatalogFileError(where, "Give a finite number.")


def _check_backend(backend: BackendTable, where: str) -> None:
    if backend.continuous_usage is not UNSET and backend.running_usage is not None:
        raise CatalogFileError(
            f"{where}.continuous_usage", "running_usage replaces this key. Leave this one out."
        )


def _check_model(model: ModelTable, where: str) -> None:
    require_unique([item.name for item in model.backends], f"{where}.backends", "name")
    limited = [item.organization for item in model.limits or ()]
    require_unique(limited, f"{where}.limits", "organization")
    for index, item in enumerate(model.limits or ()):
        if item.requests_per_minute is None and item.tokens_per_minute is None:
            raise CatalogFileError(
                f"{where}.limits[{index}]", "Give requests_per_minute, tokens_per_minute or both."
            )
    if model.published and model.pricing is None:
        raise CatalogFileError(f"{where}.pricing", "A published model needs this key.")
    if model.superseded_by is not None and not model.published:
        raise CatalogFileError(
            f"{where}.superseded_by", "Only a published model is superseded. Set published = true."
        )
    if model.shutdown_at is not None and model.superseded_by is None:
        raise CatalogFileError(
            f"{where}.shutdown_at", "Name the successor in superseded_by as well."
        )


def _check_shared_weights(models: list[ModelTable]) -> None:
    """Require that models pinned to the same weights record agree about it."""
    tokenizers: dict[str, str] = {}
    items: dict[tuple[str, str], DeploymentTable] = {}
    for index, model in enumerate(models):
        if model.tokenizer is not None:
            first = tokenizers.setdefault(model.weights, model.tokenizer)
            if first != model.tokenizer:
                raise CatalogFileError(
                    f"models[{index}].tokenizer", f"{model.weights} has {first} further up."
                )
        for position, item in enumerate(model.backends):
            above = items.setdefault((model.weights, item.name), item)
            place = f"models[{index}].backends[{position}]"
            if above.model != item.model:
                raise CatalogFileError(
                    f"{place}.model",
                    f"{item.name} serves {model.weights} as {above.model} further up.",
                )
            for key in ("weight", "draining"):
                first, given = getattr(above, key), getattr(item, key)
                if None not in (first, given) and first != given:
                    raise CatalogFileError(
                        f"{place}.{key}", f"{item.name} has {first} for {model.weights} further up."
                    )
