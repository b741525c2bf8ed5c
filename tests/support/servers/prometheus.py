"""Prometheus, which scrapes one gateway and answers expressions, and its tool for rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.support.live import fetch, free_port, output_of, run
from tests.support.servers.programs import debian_program, running
from tests.support.until import until

_CONFIGURATION = """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [RULES]
scrape_configs:
  - job_name: svc
    authorization: {credentials: TOKEN}
    static_configs: [{targets: ["127.0.0.1:TARGET"]}]
"""


@dataclass(frozen=True)
class Prometheus:
    url: str

    def ask(self, expression: str) -> Any:
        """Return the answer to an expression, which must be valid."""
        found = fetch(f"{self.url}/api/v1/query", params={"query": expression}).json()
        assert found["status"] == "success", f"{expression}: {found}"
        assert not found.get("warnings"), f"{expression}: {found}"
        return found["data"]["result"]

    def rules(self) -> list[dict[str, Any]]:
        """Return the alerts, with their health after an evaluation."""
        answer = fetch(f"{self.url}/api/v1/rules").json()
        return [rule for group in answer["data"]["groups"] for rule in group["rules"]]


@contextmanager
def running_prometheus(
    directory: Path, target: int, token: str, rules: Path
) -> Iterator[Prometheus]:
    """Run it from the moment at which it has scraped the gateway at ``target``."""
    program, port = debian_program("prometheus", "prometheus"), free_port()
    configuration = directory / "prometheus.yml"
    text = _CONFIGURATION.replace("RULES", str(rules)).replace("TOKEN", token)
    configuration.write_text(text.replace("TARGET", str(target)))
    arguments = [
        program,
        f"--config.file={configuration}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running(arguments, port, directory / "prometheus.log"):
        found = Prometheus(f"http://127.0.0.1:{port}")

        def scraped() -> bool:
            try:
                return bool(found.ask('up{job="svc"} == 1'))
            except (httpx2.TransportError, ValueError):
                return False

        until(scraped)
        yield found


def promtool(*arguments: str) -> None:
    """Run a check of promtool, which must find no fault."""
    program = debian_program("promtool", "prometheus")
    output_of(run(program, *arguments))


def simulate(
    directory: Path, series: dict[str, str], interval: str, *tests: Any, **more: Any
) -> None:
    """Have promtool make ``series``, a value each ``interval``, and evaluate ``tests`` on them."""
    case = {
        "interval": interval,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": tests,
    }
    path = directory / "simulation.json"  # JSON is YAML
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case], **more}))
    promtool("test", "rules", str(path))
