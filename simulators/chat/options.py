"""The command-line options of the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simulators.chat.faults import NO_FAULTS, Faults

DEFAULT_MODEL = "simulated"


@dataclass(frozen=True, slots=True)
class Options:
    """The command line of ``simulate_backend``.

    ``tokens_per_second`` 0 means no delay; ``first_token_delay`` is in seconds. If ``models`` is
    empty, every name is served. ``record`` is a file that gets one JSON line per request.
    ``dialect`` is a name of ``dialects.known``, or ``none``.
    """

    host: str = "127.0.0.1"
    port: int = 9000
    models: tuple[str, ...] = ()
    tokenizer: str = "o200k_base"
    tokens_per_second: float = 0.0
    first_token_delay: float = 0.0
    faults: Faults = NO_FAULTS
    dialect: str = "none"
    continuous_usage: bool = True
    api_key: str | None = None
    record: Path | None = None
    fast: bool = False
