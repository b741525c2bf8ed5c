"""Finds a server's address and its list of models; the server may be a backend of the catalog."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from core import variables
from inference.catalog.snapshot import backend_key
from inference.models import Backend, Deployment
from inference.probe.client import ErrorStatus, ProbeClient, ProbeError, Target
from inference.probe.replies import items_at, one_line, text_at

LONGEST_MODEL: Final = 200
"""Characters, the size of the column ``Deployment.model``."""
_PASTED: Final = ("/chat/completions", "/completions", "/models", "/responses")
_MOST_LISTED: Final = 5_000


@dataclass(frozen=True)
class Connected:
    """A server that answers; ``models`` are its own descriptions, by name.

    ``target`` has the address that works; ``words`` describe it.
    """

    target: Target
    models: dict[str, Any]
    words: str
    lists: bool = True


def candidates(base_url: str) -> list[str]:
    """Return the addresses that ``base_url`` may mean, likeliest first, without a final slash."""
    address = base_url.rstrip("/")
    for pasted in _PASTED:
        address = address.removesuffix(pasted)
    with_version, without = f"{address}/v1", address.removesuffix("/v1")
    if address.endswith("/v1"):
        return [address, without]
    if urlsplit(address).path:
        return [address, with_version]
    return [with_version, address]


async def connect(target: Target) -> Connected:
    """Find the address of ``target`` that lists models.

    A server that lists none, but answers like a chat API, is returned with an empty list. Raises
    ``ProbeError`` with a message that says what to do.
    """
    missed: list[str] = []
    unlisted: Target | None = None
    for address in candidates(target.base_url):
        there = replace(target, base_url=address)
        async with ProbeClient(there) as client:
            try:
                models = listed(await client.get(f"{address}/models"))
            except ErrorStatus as refused:
                if refused.is_about_the_key:
                    raise ProbeError(_about_the_key(refused, has_key=target.has_key)) from None
                if refused.status == 404 and await _completes(client):
                    unlisted = unlisted or there
                missed.append(f"GET {address}/models: {refused}")
                continue
            except ProbeError as error:
                if "no JSON" not in str(error) and "redirects" not in str(error):
                    raise ProbeError(f"GET {address}/models: {error}") from None
                missed.append(f"GET {address}/models: {error}")
                continue
        if models is not None:
            return Connected(there, models, _found(target.base_url, address))
        missed.append(f"GET {address}/models: the JSON is no list of models")
    if unlisted is not None:
        words = _found(target.base_url, unlisted.base_url)
        return Connected(unlisted, {}, words, lists=False)
    raise ProbeError(
        "this is no OpenAI-compatible server, or its API is at another path. " + "; ".join(missed)
    )


def listed(answer: Any) -> dict[str, Any] | None:
    """Return the models in an answer to ``GET /models`` by name, or None if it is no such list."""
    is_list = isinstance(answer, list)  # Together's form
    if not is_list and not (isinstance(answer, dict) and isinstance(answer.get("data"), list)):
        # A server without any model sends "data": null.
        return {} if isinstance(answer, dict) and answer.get("object") == "list" else None
    found = answer if is_list else items_at(answer, "data")
    named = {text_at(each, "id"): each for each in found[:_MOST_LISTED]}
    return {name: each for name, each in named.items() if is_usable(name)}


def is_usable(name: str) -> bool:
    """Whether a deployment can have ``name`` as its model."""
    return 0 < len(name) <= LONGEST_MODEL and name.isprintable()


async def _completes(client: ProbeClient) -> bool:
    """Whether the server has chat completions, judged by its answer to an empty request."""
    try:
        await client.post(f"{client.target.base_url}/chat/completions", {})
    except ErrorStatus as refused:
        return refused.status in (400, 401, 403, 422)
    except ProbeError:
        return False
    return False


def _about_the_key(refused: ErrorStatus, *, has_key: bool) -> str:
    said = f" It says: {refused.words}" if refused.words else ""
    if has_key:
        return f"it refuses the key ({refused.status}).{said}"
    return f"it requires an API key ({refused.status}).{said}"


def _found(given: str, address: str) -> str:
    if given.rstrip("/") == address:
        return f"it answers at {address}"
    return f"it answers at {address}, not at {one_line(given)}"


class KeyUnreadable(Exception):
    """The variable of the backend's key cannot be read; the message says why."""


def target_of(row: Backend, seconds: float) -> Target:
    """Return the server of ``row`` with what the gateway sends it. Raises ``KeyUnreadable``."""
    if found := variables.problem(row.api_key_env):
        raise KeyUnreadable(found)
    key = backend_key(row)
    headers = dict(row.headers)
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return Target(
        base_url=row.base_url,
        headers=headers,
        extra_fields=row.extra_fields,
        has_key=key is not None,
        seconds=seconds,
    )


def deployed(row: Backend) -> list[str]:
    """Return the models that the backend serves, by its own names."""
    deployments = Deployment.objects.filter(backend=row, enabled=True)
    return list(deployments.order_by("model").values_list("model", flat=True).distinct())


async def reach(target: Target) -> Connected:
    """Connect to ``target`` at its very address, as the gateway does. Raises ``ProbeError``."""
    connected = await connect(target)
    if connected.target.base_url != target.base_url.rstrip("/"):
        raise ProbeError(f"{connected.words}; change the base URL to {connected.target.base_url}")
    return connected
