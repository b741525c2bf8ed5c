"""Finding a server's address and its list of models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from inference.probe.client import NoAnswer, ProbeClient, Refused, Target
from inference.probe.replies import items_at, one_line, text_at

LONGEST_MODEL: Final = 200
"""Characters, as ``Deployment.model`` has room for."""
_PASTED: Final = ("/chat/completions", "/completions", "/models", "/responses")
_MOST_LISTED: Final = 5_000


@dataclass(frozen=True)
class Connected:
    """A server that answers; ``models`` are its own descriptions, by name.

    ``target`` has the address that works. ``words`` say what came of it.
    """

    target: Target
    models: dict[str, Any]
    words: str
    lists: bool = True


def candidates(base_url: str) -> list[str]:
    """The addresses that ``base_url`` may mean, the likeliest first, without a slash at the end."""
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
    """The server at ``target``, at whichever of its addresses lists models.

    A server that lists none is returned with an empty list, when it answered as if it had an API.
    Raises ``NoAnswer`` with words that say what to do.
    """
    missed: list[str] = []
    unlisted: Target | None = None
    for address in candidates(target.base_url):
        there = replace(target, base_url=address)
        async with ProbeClient(there) as client:
            try:
                models = listed(await client.get(f"{address}/models"))
            except Refused as refused:
                if refused.is_about_the_key:
                    raise NoAnswer(_about_the_key(refused, has_key=target.has_key)) from None
                if refused.status == 404 and await _completes(client):
                    unlisted = unlisted or there
                missed.append(f"GET {address}/models: {refused}")
                continue
            except NoAnswer as error:
                if "no JSON" not in str(error) and "redirects" not in str(error):
                    raise NoAnswer(f"GET {address}/models: {error}") from None
                missed.append(f"GET {address}/models: {error}")
                continue
        if models is not None:
            return Connected(there, models, _found(target.base_url, address))
        missed.append(f"GET {address}/models: the JSON is no list of models")
    if unlisted is not None:
        words = _found(target.base_url, unlisted.base_url)
        return Connected(unlisted, {}, words, lists=False)
    raise NoAnswer(
        "this is no OpenAI-compatible server, or its API is at another path. " + "; ".join(missed)
    )


def listed(answer: Any) -> dict[str, Any] | None:
    """The models in an answer to ``GET /models`` by name, or None when it is no such list."""
    is_list = isinstance(answer, list)  # Together's form
    if not is_list and not (isinstance(answer, dict) and isinstance(answer.get("data"), list)):
        # A server without any model says null.
        return {} if isinstance(answer, dict) and answer.get("object") == "list" else None
    found = answer if is_list else items_at(answer, "data")
    named = {text_at(each, "id"): each for each in found[:_MOST_LISTED]}
    return {name: each for name, each in named.items() if is_usable(name)}


def is_usable(name: str) -> bool:
    """Whether a deployment can have ``name`` as its model."""
    return 0 < len(name) <= LONGEST_MODEL and name.isprintable()


async def _completes(client: ProbeClient) -> bool:
    """Whether chat completions are there, going by what an empty request gets."""
    try:
        await client.post(f"{client.target.base_url}/chat/completions", {})
    except Refused as refused:
        return refused.status in (400, 401, 403, 422)
    except NoAnswer:
        return False
    return False


def _about_the_key(refused: Refused, *, has_key: bool) -> str:
    said = f" It says: {refused.words}" if refused.words else ""
    if has_key:
        return f"it refuses the key ({refused.status}).{said}"
    return f"it wants a key ({refused.status}).{said}"


def _found(given: str, address: str) -> str:
    if given.rstrip("/") == address:
        return f"it answers at {address}"
    return f"it answers at {address}, not at {one_line(given)}"
