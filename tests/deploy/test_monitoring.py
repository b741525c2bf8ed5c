"""The alerts and the dashboard of ``deploy/`` work on what a gateway exports, and each alert has a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from math import isnan
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.live import ROOT, Gateway, fetch
from tests.support.servers.prometheus import Prometheus, promtool, running_prometheus
from tests.support.speech.accounts import speech_account
from tests.support.until import until

RULES = ROOT / "deploy/prometheus/alerts.yml"
PAGE = ROOT / "docs/operate/alerts.md"
DASHBOARD = json.loads((ROOT / "deploy/grafana/svc.json").read_text())
PANELS: list[dict[str, Any]] = [each for each in DASHBOARD["panels"] if each["type"] != "row"]
TOKEN = "a-token-of-the-tests-0123456789-abcdef"
VARIABLES = {"$instance": ".*", "$__rate_interval": "1m", "$__range": "1h"}
"""What Grafana replaces before it sends an expression."""
METRIC = re.compile(r"\b(?:svc|process)_\w+\b")
UNDER_CONDITIONS = {
    "svc_limiter_shared": "inference/serving/monitoring.py",  # Redis
    "svc_request_log_dropped": "core/monitoring/request_log.py",  # SVC_REQUEST_LOG
    "svc_ledger_clock_difference_seconds": "svc_project/serving/monitoring.py",  # PostgreSQL
    "svc_speech_neural_real_time_factor": "speech/serving/monitoring.py",  # the neural voices
}
"""Families that not every gateway exports, with the module that names them."""
AFTER_FAULTS = {
    "svc_rate_limit_refusals",
    "svc_unreported_tokens",
    "svc_improbable_usage",
    "svc_speech_engine_restarts",
    "svc_speech_backend_takeovers",
    "svc_speech_phrases",
    "svc_backend_stale_connections",
    "svc_placements",
    "svc_prompt_tokens",
    "svc_cached_prompt_tokens",
}
"""Counters that have no series before the first event."""


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def graphs() -> list[str]:
    """The expressions of the dashboard, as Grafana fills them in."""
    found = [target["expr"] for panel in PANELS for target in panel["targets"]]
    for name, value in VARIABLES.items():
        found = [expression.replace(name, value) for expression in found]
    return found


def families(expression: str) -> set[str]:
    """The names in an expression, without what a kind of metric adds to its family's name."""
    return {re.sub(r"_(bucket|sum|count|total)$", "", each) for each in METRIC.findall(expression)}


@pytest.fixture
def watched(start_gateway: Callable[..., Gateway]) -> Gateway:
    """A gateway of the test's own: what happens at the shared one could fire alerts."""
    gateway = start_gateway(SVC_METRICS_TOKEN=TOKEN)
    assert gateway.chat("say: watched").status_code == 200
    return gateway


@pytest.fixture
def prometheus(watched: Gateway, tmp_path: Path) -> Iterator[Prometheus]:
    with running_prometheus(tmp_path, watched.port, TOKEN, RULES) as running:
        yield running


def test_promtool_takes_the_rules() -> None:
    promtool("check", "rules", str(RULES))


def test_every_alert_has_a_section_and_every_section_an_alert() -> None:
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sections == [rule["alert"] for rule in alerts()]
    for rule in alerts():
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}, rule["alert"]
        anchor = f"docs/operate/alerts.md#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook"] == anchor
        assert rule["labels"]["severity"] in {"page", "ticket"}
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        parts = re.findall(r"^- \*\*([\w ]+)\.\*\* \S", section, re.MULTILINE)
        assert parts == ["Means", "Look at", "Do"], section


def test_every_metric_of_the_rules_and_the_dashboard_is_exported(watched: Gateway) -> None:
    text = fetch(f"{watched.url}/metrics", key=TOKEN).text
    exported = {name.removesuffix("_total") for name in re.findall(r"(?m)^# TYPE (\w+)", text)}
    expressions = [*(rule["expr"] for rule in alerts()), *graphs()]
    used = {name for expression in expressions for name in families(expression)}

    assert len(used) > 40
    for name in used - exported:
        assert f'"{name}"' in (ROOT / UNDER_CONDITIONS[name]).read_text(), name


def test_prometheus_answers_every_expression_and_no_alert_fires_at_a_gateway_that_is_well(
    prometheus: Prometheus,
) -> None:
    for expression in [*(rule["expr"] for rule in alerts()), *graphs()]:
        prometheus.ask(expression)
    until(lambda: all(rule["health"] == "ok" for rule in prometheus.rules()))
    assert prometheus.ask("sum(svc_chat_outcomes_total)")[0]["value"][1] == "1"
    assert {rule["name"] for rule in prometheus.rules() if rule["state"] != "inactive"} == set()


def test_the_panels_show_numbers_of_what_callers_did(
    prometheus: Prometheus, watched: Gateway
) -> None:
    speech = speech_account(watched)
    watched.sees_changes()
    rare = AFTER_FAULTS | UNDER_CONDITIONS.keys()
    expected = [each for each in graphs() if not families(each) & rare]

    def without_numbers() -> list[str]:
        assert watched.chat("say: one two").status_code == 200
        assert watched.chat("say: one", "nobody/nothing").status_code == 404
        assert speech.speak("Hello.").status_code == 200
        return [
            each
            for each in expected
            if not any(not isnan(float(found["value"][1])) for found in prometheus.ask(each))
        ]

    assert len(expected) > 50
    until(lambda: not without_numbers())


def test_the_dashboard_is_whole() -> None:
    identifiers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(identifiers)) == len(identifiers)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + across, place["y"] + down)
            for across in range(place["w"])
            for down in range(place["h"])
        }
        assert max(across for across, _ in cells) < 24, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in PANELS:
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}", panel["title"]
            assert 'instance=~"$instance"' in target["expr"], panel["title"]
    assert {each["name"] for each in DASHBOARD["templating"]["list"]} == {"datasource", "instance"}
