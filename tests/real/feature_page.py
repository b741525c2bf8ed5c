"""``python -m tests.real.feature_page``: writes the feature table into docs/connect-servers.md."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs/connect-servers.md"
_BEGIN: Final = "<!-- The table is written by `python -m tests.real.feature_page`. -->\n"
_END: Final = "<!-- The end of the table. -->\n"


def table() -> str:
    """The table in Markdown, and its reasons in a numbered list."""
    from tests.real.features import FEATURES  # what it checks needs Django
    from tests.real.servers.upstreams import Server

    reasons: list[str] = []
    lines = [
        f"| | {' | '.join(server.value for server in Server)} |",
        f"|---|{'---|' * len(Server)}",
    ]
    for feature in FEATURES:
        cells = []
        for server in Server:
            differs = feature.differs.get(server)
            if differs is None:
                cells.append("yes")
                continue
            if differs.reason not in reasons:
                reasons.append(differs.reason)
            mark = "not tried" if differs.check is None else "no"
            cells.append(f"{mark} ({reasons.index(differs.reason) + 1})")
        lines.append(f"| {feature.title} | {' | '.join(cells)} |")
    listed = [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", *listed]) + "\n"


def with_table(page: str) -> str:
    """``page`` with the table of the tests in its place."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{table()}{_END}{after}"


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
    django.setup()
    PAGE.write_text(with_table(PAGE.read_text()))
