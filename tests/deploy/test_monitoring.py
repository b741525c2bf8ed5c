"""The alerts and the dashboard of ``deploy/`` work on what a gateway exports, and each alert has a page."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import yaml

from tests.support.live import NO_TLS, ROOT, Gateway
from tests.support.servers.programs import debian_program
from tests.support.servers.prometheus import running_prometheus
from tests.support.until import until

RULES = ROOT / "deploy/prometheus/alerts.yml"
DASHBOARD = ROOT / "deploy/grafana/svc.json"
PAGE = ROOT / "docs/operate/alerts.md"
TOKEN = "a-token-of-the-tests-0123456789-abcdef"
WITH_ENGINES = {"svc_ledger_clock_difference_seconds", "svc_limiter_shared"}
"""Exported with PostgreSQL or Redis only."""
VARIABLES = {"$instance": ".*", "$__rate_interval": "1m"}


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def graphs() -> list[str]:
    """The expressions of the dashboard, as Grafana fills them in."""
    found = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            found.append(expression)
    return found


def test_promtool_takes_the_rules() -> None:
    program = debian_program("promtool", "prometheus")
    done = subprocess.run(
        [program, "check", "rules", str(RULES)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_section_and_every_section_an_alert() -> None:
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sections == [rule["alert"] for rule in alerts()]
    for rule in alerts():
        anchor = f"docs/operate/alerts.md#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook"] == anchor
        assert rule["labels"]["severity"] in {"page", "ticket"}
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        assert "\nLook at: " in section
        assert "\nDo: " in section


def test_prometheus_evaluates_every_rule_and_graph(
    start_gateway: Callable[..., Gateway], tmp_path: Path
) -> None:
    gateway = start_gateway(SVC_METRICS_TOKEN=TOKEN)
    assert gateway.chat("say: watched").status_code == 200
    exported = httpx2.get(
        f"{gateway.url}/metrics", headers={"authorization": f"Bearer {TOKEN}"}, verify=NO_TLS
    ).text
    names = set(re.findall(r"^# TYPE (\w+)", exported, re.MULTILINE)) | WITH_ENGINES

    with running_prometheus(tmp_path, gateway.port, TOKEN, RULES) as prometheus:
        for expression in [*(rule["expr"] for rule in alerts()), *graphs()]:
            prometheus.ask(expression)
            for name in re.findall(r"\b(?:svc|process)_\w+", expression):
                family = re.sub(r"_(bucket|sum|count)$", "", name)
                assert {name, family} & names, f"no gateway exports {name}"
        until(lambda: all(rule["health"] == "ok" for rule in prometheus.rules()))
        assert prometheus.ask("sum(svc_chat_outcomes_total)")[0]["value"][1] == "1"
        firing = {rule["name"] for rule in prometheus.rules() if rule["state"] == "firing"}

    assert firing == set(), "an alert fires at a gateway that is well"
