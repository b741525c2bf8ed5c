"""The names under which the console shows API keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from accounts.models import ApiKey, Organization, Scope
from core.ids import NIL_UUID


@dataclass(frozen=True, slots=True)
class KeyName:
    """``text`` is the label, else the prefix; ``prefix`` is empty when the key has no name here."""

    api_key_id: str
    text: str
    prefix: str = ""


_NAMED_BY: Final = ("pk", "label", "prefix")
MOST_CHOICES = 100
"""How many of the newest API keys a filter offers; older ones are chosen by id."""

NO_KEY = KeyName(str(NIL_UUID), "without a key")


def key_name(api_key_id: str, label: str | None, prefix: str | None) -> KeyName:
    """The name of the API key with an id from the ledger.

    Without label and prefix it is a request without a key, or a key that does not, or no longer,
    belong to the organization (inference contract, Usage summary).
    """
    if api_key_id == NO_KEY.api_key_id:
        return NO_KEY
    if prefix is None:
        return KeyName(api_key_id, f"not a key of this organization ({api_key_id[:8]}…)")
    return KeyName(api_key_id, label or f"{prefix}…", f"{prefix}…")


def names_of(organization: Organization, api_key_ids: Iterable[str]) -> dict[str, KeyName]:
    """The names of the API keys with ``api_key_ids`` that ``organization`` may see."""
    wanted = set(api_key_ids)
    keys = ApiKey.objects.filter(organization=organization, pk__in=wanted)
    own = {str(pk): (label, prefix) for pk, label, prefix in keys.values_list(*_NAMED_BY)}
    return {each: key_name(each, *own.get(each, (None, None))) for each in wanted}


def distinct_texts(names: Mapping[str, KeyName]) -> dict[str, str]:
    """The texts of ``names``, with the prefix where several have the same."""
    counts = Counter(name.text for name in names.values())
    return {
        each: f"{name.text} ({name.prefix})" if counts[name.text] > 1 and name.prefix else name.text
        for each, name in names.items()
    }


def choices(
    organization: Organization, chosen: str | None, scopes: Iterable[Scope]
) -> list[KeyName]:
    """The choices of the key filter: the newest keys of ``scopes``, no key, and the ``chosen`` one."""
    keys = ApiKey.objects.filter(organization=organization, scope__in=scopes)
    newest = keys.values_list(*_NAMED_BY)[:MOST_CHOICES]
    offered = [key_name(str(pk), label, prefix) for pk, label, prefix in newest]
    offered.append(NO_KEY)
    if chosen and chosen not in {each.api_key_id for each in offered}:
        offered += names_of(organization, [chosen]).values()
    return offered
