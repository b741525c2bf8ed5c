"""Refused requests as the consumers report them: whose each was and why, never its body.

The listeners keep them (``usage.refusals``). Without a listener a report costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from accounts.keys.header import authorization, bearer_token
from accounts.keys.keyring import keyring
from accounts.keys.keys import cut_secrets
from accounts.keys.principal import Principal
from core import clock
from core.errors import ApiError, InvalidCredential, name_of

LONGEST_MESSAGE: Final = 500
LONGEST_PARAM: Final = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was answered with an error and has no row.

    ``error`` is its name on the page of errors, ``param`` and ``model`` are empty where there is none.
    The ids are UUID texts. Where the owner is not known yet, they are empty, and the key may be found by
    ``digests``.
    """

    request_id: str
    occurred_at: datetime
    organization_id: str
    api_key_id: str
    digests: tuple[str, ...]
    route: str
    status: int
    error: str
    param: str
    message: str
    model: str


listeners: Final[list[Callable[[Refusal], None]]] = []
"""Those of this process; filled before the first request. None may wait or raise."""


class Refused(Protocol):
    """The consumer of the request."""

    request_id: str
    principal: Principal | None
    scope: dict[str, Any]
    route: Any


def report(consumer: Refused, error: ApiError) -> None:
    """Tell the listeners of a request, unless its key cannot be any organization's."""
    if not listeners:
        return
    owner = consumer.principal or _owner(consumer.scope["headers"])
    if owner is None:
        return
    principal = owner if isinstance(owner, Principal) else None
    refusal = Refusal(
        request_id=consumer.request_id,
        occurred_at=clock.now(),
        organization_id=principal.organization_id if principal else "",
        api_key_id=principal.api_key_id if principal else "",
        digests=() if isinstance(owner, Principal) else owner,
        route=consumer.route,
        status=error.status,
        error=name_of(type(error)),
        param=(error.param or "")[:LONGEST_PARAM],
        message=cut_secrets(error.kept[:LONGEST_MESSAGE]),
        model=error.model,
    )
    for each in listeners:
        each(refusal)


def _owner(headers: Iterable[tuple[bytes, bytes]]) -> Principal | tuple[str, ...] | None:
    try:
        return keyring.owner_of(bearer_token(authorization(headers)))
    except InvalidCredential:
        return None
