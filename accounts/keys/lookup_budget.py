"""Limits look-ups of unknown keys: in all, and from one client network.

The checksum of a key is public, so anyone can invent keys that have to be looked up. A network is an
IPv4 address or a /64 of IPv6 (``svc_project.lib.api.client_address``); "" stands for none known.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from svc_project.lib.errors import ServerOverloaded

UNKNOWN_PER_SECOND: Final = 100
"""Failed look-ups a second, of all networks together."""
OF_ONE_NETWORK_PER_SECOND: Final = 20
OF_ONE_NETWORK_AT_ONCE: Final = 50
RESERVED_PER_SECOND: Final = 50
"""Further look-ups a second, reserved for networks with hardly any failed look-ups."""
LONGEST_WAIT_SECONDS: Final = 5.0
"""How long a key that is not cached may wait for its look-up before the answer is 503."""

_TRUSTED_LEVEL: Final = 0.8
_MOST_NETWORKS: Final = 10_000
_MOST_WAITING: Final = 16
_MOST_WAITING_OF_ONE: Final = 4
_POLL_SECONDS: Final = 0.01


def too_many_waiting() -> ServerOverloaded:
    """The answer to a key that would have to wait too long."""
    return ServerOverloaded("Too many unknown keys wait to be looked up. Try again shortly.")


@dataclass(slots=True)
class _Bucket:
    """Tokens that refill at ``per_second``, up to ``most``."""

    per_second: float
    most: float
    tokens: float = field(init=False)
    filled: float = 0.0

    def __post_init__(self) -> None:
        self.tokens = self.most

    def fill(self, now: float) -> float:
        if now > self.filled:
            self.tokens = min(self.most, self.tokens + (now - self.filled) * self.per_second)
        self.filled = now
        return self.tokens

    def refund(self) -> None:
        self.tokens = min(self.most, self.tokens + 1)


class UnknownKeyBudget:
    """Token buckets: a common one, a reserved one, and one of each network. Thread-safe.

    A look-up takes a token of its network and a common one; both are refunded when it finds a key.
    So valid keys are never slowed down; a flood of invalid keys is. When the common bucket is
    empty, a network with hardly any failed look-ups takes from the reserved one.
    """

    def __init__(
        self,
        per_second: int = UNKNOWN_PER_SECOND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._common = _Bucket(per_second, per_second)
        self._reserved = _Bucket(RESERVED_PER_SECOND, RESERVED_PER_SECOND)
        self._networks: OrderedDict[str, _Bucket] = OrderedDict()
        self._waiting: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, network: str = "") -> bool:
        """Take the tokens of one look-up; False when there are none."""
        now = self._clock()
        with self._lock:
            own = self._own(network, now) if network else None
            if own is not None and own.tokens < 1:
                return False
            shared = self._common
            if shared.fill(now) < 1:
                shared = self._reserved
                is_trusted = own is not None and own.tokens > own.most * _TRUSTED_LEVEL
                if not is_trusted or shared.fill(now) < 1:
                    return False
            shared.tokens -= 1
            if own is not None:
                own.tokens -= 1
            return True

    def refund(self, network: str = "") -> None:
        """Refund the tokens of a look-up that found a key."""
        with self._lock:
            self._common.refund()
            if own := self._networks.get(network):
                own.refund()

    def wait_and_take(self, network: str = "") -> None:
        """Take the tokens of one look-up; blocks this thread until there are some.

        Raises ``ServerOverloaded`` after ``LONGEST_WAIT_SECONDS``, and at once when too many
        threads wait already, or too many for this network.
        """
        if self.take(network):
            return
        with self._lock:
            if (
                self._waiting.total() >= _MOST_WAITING
                or self._waiting[network] >= _MOST_WAITING_OF_ONE
            ):
                raise too_many_waiting()
            self._waiting[network] += 1
        try:
            deadline = time.monotonic() + LONGEST_WAIT_SECONDS
            while not self.take(network):
                if time.monotonic() > deadline:
                    raise too_many_waiting()
                time.sleep(_POLL_SECONDS)
        finally:
            with self._lock:
                self._waiting[network] -= 1
                self._waiting += Counter()  # drops the networks of which none waits

    def _own(self, network: str, now: float) -> _Bucket:
        """The bucket of ``network``; a new one evicts the one used longest ago."""
        own = self._networks.get(network)
        if own is None:
            own = self._networks[network] = _Bucket(
                OF_ONE_NETWORK_PER_SECOND, OF_ONE_NETWORK_AT_ONCE
            )
            if len(self._networks) > _MOST_NETWORKS:
                self._networks.popitem(last=False)
        self._networks.move_to_end(network)
        own.fill(now)
        return own
