"""The measurements of the attacks as Markdown tables in docs/measurements/neighbours.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.resilience.attackers import ATTACKERS
from tests.resilience.measuring.measure import Attack, Figures
from tests.resilience.measuring.processes import MEGABYTE
from tests.resilience.victim import PROBES, Kind

PAGE: Final = Path(__file__).resolve().parents[3] / "docs/measurements/neighbours.md"
BEGIN: Final = (
    "<!-- The tables are written by `python -m tests.resilience.neighbours --write`. -->\n"
)
END: Final = "<!-- The end of the tables. -->\n"
KINDS: Final = tuple(kind for kind in Kind if kind not in PROBES)
_MILLISECONDS = 1000

Percentile = Callable[[Figures, Kind], float]


def tables(attacks: Sequence[Attack], setting: str) -> str:
    """A list of the attackers and three tables; ``setting`` describes the measurement."""
    return "\n".join(
        [
            *(f"- **{_title(name)}**: {described(name)}" for name in _single(attacks)),
            "",
            setting,
            "",
            *_outcomes(attacks),
            "",
            "p50 of the victim's requests, ms: before / during (ratio)",
            "",
            *_latencies(attacks, Figures.p50),
            "",
            "p99, ms: before / during (ratio)",
            "",
            *_latencies(attacks, Figures.p99),
            "",
        ]
    )


def _outcomes(attacks: Sequence[Attack]) -> list[str]:
    lines = [
        "| Attacker | What he was answered | Victim's errors | Longest `/livez`, ms"
        " | Longest `/readyz`, ms | Worker's memory, MB | Its threads | Bodies on disk, MB"
        " | Database connections | Page process, MB |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for attack in attacks:
        asked = len(attack.whole.samples)
        probes = [f"{attack.whole.longest(kind) * _MILLISECONDS:.0f}" for kind in PROBES]
        cells = [
            _name(attack),
            _answers(attack),
            f"{len(attack.whole.errors)} of {asked}",
            *probes,
            f"{attack.taken.memory / MEGABYTE:.0f}",
            str(attack.taken.threads),
            f"{attack.taken.spooled / MEGABYTE:.0f}",
            str(attack.taken.connections),
            f"{attack.taken.pages_memory / MEGABYTE:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _latencies(attacks: Sequence[Attack], percentile: Percentile) -> list[str]:
    lines = [f"| Attacker | {' | '.join(KINDS)} |", f"|---|{'---:|' * len(KINDS)}"]
    for attack in attacks:
        cells = []
        for kind in KINDS:
            before = percentile(attack.before, kind) * _MILLISECONDS
            during = percentile(attack.during, kind) * _MILLISECONDS
            cells.append(f"{before:.0f} / {during:.0f} ({during / before:.1f})")
        lines.append(f"| {_name(attack)} | {' | '.join(cells)} |")
    return lines


def described(name: str) -> str:
    """The docstring of an attacker in one line."""
    return " ".join((ATTACKERS[name].__doc__ or "").split())


def _single(attacks: Sequence[Attack]) -> list[str]:
    return [attack.names[0] for attack in attacks if len(attack.names) == 1]


def _title(name: str) -> str:
    return name.replace("_", " ")


def _name(attack: Attack) -> str:
    return _title(attack.names[0]) if len(attack.names) == 1 else "all at once"


def _answers(attack: Attack) -> str:
    if len(attack.names) > 1:
        return f"{sum(sum(each.values()) for each in attack.answers.values())} events"
    (answers,) = attack.answers.values()
    return ", ".join(f"{count} x {what}" for what, count in sorted(answers.items()))


def with_tables(page: str, written: str) -> str:
    """``page`` with ``written`` in the place of its tables."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{written}{END}{after}"
