"""Learns in which dialect a model server reports token counts while a stream runs, in each worker.

docs/explain/backends.md, "How a dialect is learnt", has the rules and their reasons.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from core.errors import ApiError, BackendRejectedRequest
from core.http_client.response import Response
from inference.backends.client import NotStarted, ServerFailed
from inference.catalog.snapshot import DeploymentRef
from inference.wire.dialects import RunningUsage

log = logging.getLogger(__name__)

REMEMBERED_SECONDS: Final = 3600.0
"""A dialect that was refused or had no effect is asked for again after an hour, because a server
may be updated without showing it. A dialect with an effect is kept as long as reports come."""

SHORTEST_VERSION_SECONDS: Final = 60.0
"""Another ``system_fingerprint`` within a minute starts nothing anew: behind a load balancer, servers
of two versions answer in turns."""

QUIET_SECONDS: Final = 60.0
"""After a request that failed without a dialect too, none is sent a second time for a minute: the
request or the server is at fault, and a server in trouble must not get twice the load."""

QUICK_FAILURE_SECONDS: Final = 1.0
"""A server error that came later than this is not a refusal of a field: the server had begun to work."""

REFUSALS: Final = 1
SERVER_FAILURES: Final = 3
STREAMS_WITHOUT_REPORTS: Final = 2
"""After how many in a row a dialect is left. A 4xx for a field alone cannot be chance; a server error
may be, and so may be a stream of a proven dialect in which no report came."""

MOST_REFUSED: Final = 20
"""After so many refusals in a row that were not repeated, a proven dialect is left too: the requests of
one caller must not hide for long that the server refuses it now."""

MOST_REMEMBERED: Final = 1024
"""Pairs of a backend and a model of which something is remembered; the oldest is dropped first."""

_AUTO, _VLLM, _LLAMA_CPP, _NONE = (
    RunningUsage.AUTO,
    RunningUsage.VLLM,
    RunningUsage.LLAMA_CPP,
    RunningUsage.NONE,
)
_AFTER_REFUSAL: Final = {_AUTO: _VLLM, _VLLM: _LLAMA_CPP, _LLAMA_CPP: _NONE}
_AFTER_NO_EFFECT: Final = {_AUTO: _NONE, _VLLM: _LLAMA_CPP, _LLAMA_CPP: _NONE}

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What is known of one model of a backend. Times are those of the clock."""

    since: float
    """When ``dialect`` was learnt."""
    dialect: RunningUsage = _AUTO
    """The dialect in which the next stream asks; ``AUTO`` while nothing is known."""
    proven: bool = False
    """Whether reports came when a stream asked in it."""
    version: str | None = None
    """The server's ``system_fingerprint`` then, or None when it had none."""
    doubts: int = 0
    """How many streams in a row spoke against ``dialect``."""
    refused: int = 0
    """How many requests in a row were refused in ``dialect`` and not sent a second time."""
    quiet_until: float = 0.0
    """Until then no request is sent a second time."""


class UsageDialects:
    """Remembers the dialect of each backend with ``running_usage`` ``auto``; any other is returned as it is.

    It belongs to the backend, its address and the model's name there, because a proxy may have
    different servers behind it. ``clock`` is in seconds and monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_key: dict[Key, _Learnt] = {}

    def dialect(self, deployment: DeploymentRef) -> RunningUsage:
        """Return the dialect in which a stream asks; ``AUTO`` means in all of them at once.

        While no request is sent a second time, only a proven dialect is asked for: what is not
        proven might be refused, and the caller would see it.
        """
        configured = deployment.backend.running_usage
        if configured is not _AUTO:
            return configured
        learnt = self._known(deployment)
        is_quiet = not learnt.proven and self._clock() < learnt.quiet_until
        return _NONE if is_quiet else learnt.dialect

    async def post(
        self, deployment: DeploymentRef, post: Callable[[RunningUsage], Awaitable[Response]]
    ) -> Response:
        """Send a stream with ``post`` in the dialect, and again without one if that may be refused.

        Raises what ``post`` raises; a refusal that the dialect may have caused only when the request
        fails without it too.
        """
        asked, began = self.dialect(deployment), self._clock()
        try:
            return await post(asked)
        except (BackendRejectedRequest, ServerFailed) as error:
            has_failed = isinstance(error, ServerFailed)
            if has_failed and self._clock() - began > QUICK_FAILURE_SECONDS:
                self._failed_late(deployment, asked)
                raise
            if not self._may_repeat(deployment, asked):
                self._refused_unrepeated(deployment, asked)
                raise
            try:
                response = await post(_NONE)
            except (ApiError, NotStarted) as again:
                self._be_quiet(deployment)
                if has_failed and isinstance(again, NotStarted):
                    # The server may have started on it, so no other backend gets it.
                    raise error from None
                raise
        self._doubt(deployment, asked, _AFTER_REFUSAL, SERVER_FAILURES if has_failed else REFUSALS)
        return response

    def ended(
        self,
        deployment: DeploymentRef,
        asked: RunningUsage,
        seen: RunningUsage | None,
        version: str | None,
    ) -> None:
        """Learn from a stream that asked in ``asked``.

        ``seen``: the dialect of the reports that came while it ran, ``NONE`` if there were none, and
        None when it was too short for one. ``version``: the server's ``system_fingerprint``.
        """
        if deployment.backend.running_usage is not _AUTO:
            return
        learnt, key = self._known(deployment), _key(deployment)
        if key in self._by_key and version is not None and version != learnt.version:
            if learnt.version is None:
                self._by_key[key] = replace(learnt, version=version)
            elif self._clock() - learnt.since >= SHORTEST_VERSION_SECONDS:
                del self._by_key[key]
        if asked is _NONE or seen is None:
            return
        if seen is _NONE:
            most = STREAMS_WITHOUT_REPORTS if learnt.proven else 1
            self._doubt(deployment, asked, _AFTER_NO_EFFECT, most, version)
            return
        found = seen if asked is _AUTO else asked
        if not learnt.proven or learnt.dialect is not found:
            self._remember(deployment, found, version, proven=True)
        elif (learnt.doubts or learnt.refused) and key in self._by_key:
            self._by_key[key] = replace(self._by_key[key], doubts=0, refused=0)

    def _may_repeat(self, deployment: DeploymentRef, asked: RunningUsage) -> bool:
        """Whether a request that asked in ``asked`` and was refused is sent again without.

        What the refusal says does not matter, because it may quote the caller.
        """
        if asked is _NONE or deployment.backend.running_usage is not _AUTO:
            return False
        learnt = self._known(deployment)
        return not learnt.proven or self._clock() >= learnt.quiet_until

    def _failed_late(self, deployment: DeploymentRef, asked: RunningUsage) -> None:
        """Learn from a server error that is not repeated, since the dialect may be its reason."""
        if asked is _NONE or deployment.backend.running_usage is not _AUTO:
            return
        if not self._known(deployment).proven:
            self._be_quiet(deployment)
        self._doubt(deployment, asked, _AFTER_REFUSAL, SERVER_FAILURES)

    def _refused_unrepeated(self, deployment: DeploymentRef, asked: RunningUsage) -> None:
        """Count what a proven dialect may have caused; after many in a row, ask for none for the rest
        of the quiet minute, and then start anew."""
        learnt = self._known(deployment)
        if not learnt.proven or asked is not learnt.dialect:
            return
        refused = learnt.refused + 1
        if refused < MOST_REFUSED:
            self._set(deployment, replace(learnt, refused=refused))
        else:
            self._set(deployment, _Learnt(self._clock(), quiet_until=learnt.quiet_until))

    def _be_quiet(self, deployment: DeploymentRef) -> None:
        quiet_until = self._clock() + QUIET_SECONDS
        self._set(deployment, replace(self._known(deployment), quiet_until=quiet_until))

    def _doubt(
        self,
        deployment: DeploymentRef,
        asked: RunningUsage,
        following: dict[RunningUsage, RunningUsage],
        most: int,
        version: str | None = None,
    ) -> None:
        """Note that ``asked`` was refused or had no effect; the ``most``-th time in a row, leave it.

        Goes on to the dialect ``following`` it, or starts anew when it was proven, because the
        server is another one now. Does nothing when another stream has left it already.
        """
        learnt = self._known(deployment)
        if asked is not learnt.dialect:
            return
        if learnt.doubts + 1 < most:
            self._set(deployment, replace(learnt, doubts=learnt.doubts + 1))
        elif learnt.proven:
            del self._by_key[_key(deployment)]
        else:
            self._remember(deployment, following[asked], version, proven=False)

    def _remember(
        self, deployment: DeploymentRef, dialect: RunningUsage, version: str | None, *, proven: bool
    ) -> None:
        self._by_key.pop(_key(deployment), None)
        self._set(deployment, _Learnt(self._clock(), dialect, proven, version))
        if proven or dialect is _NONE:
            name = deployment.backend.name
            log.info("backend %s: running usage of its streams: %s", name, dialect.value)

    def _set(self, deployment: DeploymentRef, learnt: _Learnt) -> None:
        key = _key(deployment)
        if key not in self._by_key and len(self._by_key) >= MOST_REMEMBERED:
            del self._by_key[next(iter(self._by_key))]
        self._by_key[key] = learnt

    def _known(self, deployment: DeploymentRef) -> _Learnt:
        """Return what is remembered and still believed, else that nothing is known."""
        now = self._clock()
        learnt = self._by_key.get(_key(deployment))
        if learnt is None:
            return _Learnt(now)
        if not learnt.proven and now - learnt.since >= REMEMBERED_SECONDS:
            del self._by_key[_key(deployment)]
            return _Learnt(now)
        return learnt


def _key(deployment: DeploymentRef) -> Key:
    return deployment.backend.id, deployment.backend.base_url, deployment.model
