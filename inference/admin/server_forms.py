"""The forms of the page that adds a model server: where it is, and how its models are published."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from core import variables
from core.backends.validators import check_base_url
from core.money import PRICE_DECIMALS, PRICE_DIGITS, price_text
from inference.catalog.file import ModelTable, PricingTable
from inference.models.catalog import CURRENCY, CURRENCY_RULE, IDENTIFIER, IDENTIFIER_RULE
from inference.probe.client import Target
from inference.probe.findings import ModelFindings, shortcomings
from inference.probe.publishing import Wanted
from inference.probe.run import MOST_MODELS

ANSWER_SECONDS: Final = 20.0
"""How long each answer may take, the loading of its model included."""
_LARGEST_CONTEXT: Final = 2**31 - 1


class ServerForm(forms.Form):
    """Where the server is, and what it needs."""

    base_url = forms.CharField(
        label="Address",
        max_length=300,
        validators=[check_base_url],
        help_text="Such as http://10.0.0.5:8000. Whether its API is below /v1 is found out.",
    )
    api_key_env = forms.CharField(
        label="API key variable",
        required=False,
        max_length=100,
        help_text="Name of the environment variable that holds the server's key. Empty: no key.",
    )
    name = forms.CharField(
        label="Name", required=False, max_length=80, help_text="Empty: its host and port."
    )
    models = forms.CharField(
        label="Models",
        required=False,
        max_length=2000,
        help_text="The server's names, with commas between. Empty: those that it lists, "
        f"{MOST_MODELS} at most.",
    )

    def clean_api_key_env(self) -> str:
        variable: str = self.cleaned_data["api_key_env"].strip()
        if found := variables.problem(variable):
            raise ValidationError(found)
        return variable

    def clean_models(self) -> list[str]:
        typed = (each.strip() for each in self.cleaned_data["models"].split(","))
        named = [each for each in typed if each]
        if len(named) > MOST_MODELS:
            raise ValidationError(f"Name at most {MOST_MODELS} models at a time.")
        return named

    def target(self) -> Target:
        """The server as the probe asks it."""
        key = variables.secret_of(self.cleaned_data["api_key_env"])
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        address = self.cleaned_data["base_url"]
        return Target(address, headers, has_key=key is not None, seconds=ANSWER_SECONDS)


class CurrencyForm(forms.Form):
    currency = forms.CharField(
        label="Currency", max_length=3, validators=[RegexValidator(CURRENCY, CURRENCY_RULE)]
    )


class ModelForm(forms.Form):
    """A model that was found: whether and how it is published. What it lacks is said of all at once."""

    publish = forms.BooleanField(required=False)
    identifier = forms.CharField(
        required=False, max_length=200, validators=[RegexValidator(IDENTIFIER, IDENTIFIER_RULE)]
    )
    context_length = forms.IntegerField(
        required=False, min_value=1, max_value=_LARGEST_CONTEXT, label="context length"
    )
    input_per_mtok = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=PRICE_DIGITS,
        decimal_places=PRICE_DECIMALS,
        label="price of input",
    )
    output_per_mtok = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=PRICE_DIGITS,
        decimal_places=PRICE_DECIMALS,
        label="price of output",
    )

    def __init__(
        self, data: Any, findings: ModelFindings, number: int, stored: dict[str, ModelTable]
    ) -> None:
        self.findings = findings
        self.stored = stored
        self.lacks = list(shortcomings(findings))
        super().__init__(data, prefix=f"model{number}")
        for name, field in self.fields.items():
            field.widget.attrs["aria-label"] = f"{field.label or name}, {findings.name}"
            if isinstance(field.widget, forms.NumberInput):
                attributes = {**field.widget.attrs, "inputmode": "decimal", "size": 8}
                field.widget = forms.TextInput(attributes)

    @property
    def chosen(self) -> bool:
        return bool(self["publish"].value())

    @property
    def known(self) -> ModelTable | None:
        """The model of the catalog with the identifier that the form has."""
        return self.stored.get(str(self["identifier"].value() or ""))

    @property
    def in_force(self) -> str:
        """The price that the model has already, where it is published."""
        if self.known is None or self.known.pricing is None or not self.known.published:
            return ""
        price = self.known.pricing
        return f"{price.input_per_mtok} / {price.output_per_mtok} {price.currency}"

    def missing(self) -> Iterator[tuple[str, str]]:
        """What the model lacks to be published: the field, and words."""
        for name, found in self.errors.items():
            yield name, f"{self.fields[name].label or name}: {' '.join(map(str, found))}"
        given = self.cleaned_data
        if "identifier" in given and not given["identifier"]:
            yield "identifier", "it has no identifier"
        if self.known is None and "context_length" in given and given["context_length"] is None:
            yield "context_length", "it does not report its context length"
        if self.in_force:
            return
        for field in ("input_per_mtok", "output_per_mtok"):
            if field in given and given[field] is None:
                yield field, f"the {self.fields[field].label} is missing"

    def wanted(self, currency: str) -> Wanted:
        """The model as the valid form has it."""
        given = self.cleaned_data
        known = self.known
        return Wanted(
            findings=self.findings,
            identifier=given["identifier"],
            context_length=given["context_length"] or (known.context_length if known else 1),
            pricing=PricingTable(
                input_per_mtok=price_text(given["input_per_mtok"] or Decimal(0)),
                output_per_mtok=price_text(given["output_per_mtok"] or Decimal(0)),
                currency=currency,
            ),
        )
