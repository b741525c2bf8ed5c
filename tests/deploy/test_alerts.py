"""Each alert fires in the state that it is for, and not in one that only resembles it.

promtool simulates 70 minutes of each; no gateway is needed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.test_monitoring import RULES, alerts
from tests.support.servers.prometheus import simulate

HOST = 'job="svc",instance="a:8000"'
WORKER = f'{HOST},worker="0"'
BACKEND = f'{WORKER},backend="one",model="m"'
SECOND = f'{HOST},worker="1",backend="one",model="m"'
ROUTE = f'{WORKER},surface="inference",route="chat"'
LASTING = "x70"

FIRES: dict[str, dict[str, str]] = {
    "SvcDown": {f"up{{{HOST}}}": "0+0" + LASTING},
    "SvcNotReady": {f"svc_ready{{{WORKER}}}": "0+0" + LASTING},
    "SvcWorkerRestarts": {  # of two workers, each once
        f"svc_worker_restarts_total{{{WORKER}}}": "0+0x60 1+0x9",
        f'svc_worker_restarts_total{{{HOST},worker="1"}}': "0+0x64 1+0x5",
    },
    "SvcEventLoopLag": {
        f"svc_event_loop_lag_seconds_sum{{{WORKER}}}": "0+48" + LASTING,
        f"svc_event_loop_lag_seconds_count{{{WORKER}}}": "0+240" + LASTING,
    },
    "SvcPollAge": {f'svc_poll_age_seconds{{{WORKER},subject="keys"}}': "0+60" + LASTING},
    "SvcOpenFiles": {
        f"process_open_fds{{{WORKER}}}": "900+0" + LASTING,
        f"process_max_fds{{{WORKER}}}": "1024+0" + LASTING,
    },
    "SvcRequestLogDropped": {f"svc_request_log_dropped_total{{{WORKER}}}": "0+0x65 7+0x5"},
    "SvcDatabaseAway": {
        f"svc_ledger_database_up{{{WORKER}}}": "0+0" + LASTING,
        f'svc_ledger_database_up{{{HOST},worker="1"}}': "1+0" + LASTING,
    },
    "SvcJournalDown": {f"svc_ledger_journal_up{{{WORKER}}}": "0+0" + LASTING},
    "SvcJournalGrows": {f"svc_ledger_journal_bytes{{{WORKER}}}": "600000000+0" + LASTING},
    "SvcRowsInMemoryOnly": {f"svc_ledger_rows_kept{{{WORKER}}}": "3+0" + LASTING},
    "SvcRowsRefused": {f"svc_ledger_refused_rows{{{WORKER}}}": "1+0" + LASTING},
    "SvcJournalUnreadable": {f"svc_ledger_unreadable_files{{{WORKER}}}": "1+0" + LASTING},
    "SvcClocksApart": {f"svc_ledger_clock_difference_seconds{{{WORKER}}}": "-2+0" + LASTING},
    "SvcErrors": {
        f'svc_requests_total{{{ROUTE},status="200",code=""}}': "0+98" + LASTING,
        f'svc_requests_total{{{ROUTE},status="502",code="backend_error"}}': "0+2" + LASTING,
    },
    "SvcPageFailures": {
        f'svc_requests_total{{{WORKER},surface="inference",route="pages",status="500"}}': "_x65 1+0x5"
    },
    "SvcOverloaded": {
        f'svc_requests_total{{{ROUTE},status="503",code="server_overloaded"}}': "0+1" + LASTING
    },
    "SvcCapacityNear": {
        f'svc_capacity_used{{{WORKER},kind="requests"}}': "90+0" + LASTING,
        f'svc_capacity{{{WORKER},kind="requests"}}': "100+0" + LASTING,
    },
    "SvcCapacityFull": {
        f'svc_capacity_refusals_total{{{WORKER},kind="requests",reason="full"}}': "0+1" + LASTING
    },
    "SvcShareReached": {
        f'svc_capacity_refusals_total{{{WORKER},kind="requests",reason="share"}}': "0+1" + LASTING
    },
    "SvcLimitsApart": {f"svc_limiter_shared{{{WORKER}}}": "0+0" + LASTING},
    "SvcBackendEjected": {  # the second worker has sent it nothing
        f"svc_backend_ejected{{{BACKEND}}}": "1+0" + LASTING,
        f"svc_backend_ejected{{{SECOND}}}": "0+0" + LASTING,
        f"svc_backend_last_failure_timestamp_seconds{{{BACKEND}}}": "200+0" + LASTING,
        f"svc_backend_last_answer_timestamp_seconds{{{BACKEND}}}": "0+0" + LASTING,
        f"svc_backend_last_answer_timestamp_seconds{{{SECOND}}}": "100+0" + LASTING,
    },
    "SvcBackendFails": {
        f"svc_backend_failures_in_a_row{{{BACKEND}}}": "9+0" + LASTING,
        f"svc_backend_failures_in_a_row{{{SECOND}}}": "0+0" + LASTING,
        f"svc_backend_last_failure_timestamp_seconds{{{BACKEND}}}": "200+0" + LASTING,
        f"svc_backend_last_answer_timestamp_seconds{{{BACKEND}}}": "100+0" + LASTING,
        f"svc_backend_last_answer_timestamp_seconds{{{SECOND}}}": "0+0" + LASTING,
    },
    "SvcPoison": {f"svc_poison_refusals_total{{{WORKER}}}": "0+0x65 1+0x5"},
    "SvcUnreportedTokens": {f"svc_unreported_tokens_total{{{BACKEND}}}": "_x65 40+0x5"},
    "SvcImprobableUsage": {
        f'svc_improbable_usage_total{{{BACKEND},exceeded="context"}}': "_x65 1+0x5"
    },
    "SvcSpeechFailures": {
        f'svc_speech_outcomes_total{{{WORKER},engine="espeak",transport="http",outcome="success"}}': (
            "0+90" + LASTING
        ),
        f'svc_speech_outcomes_total{{{WORKER},engine="espeak",transport="http",outcome="backend_error"}}': (
            "0+10" + LASTING
        ),
    },
    "SvcSpeechBackendFails": {
        f"svc_speech_backend_failures_in_a_row{{{BACKEND}}}": "9+0" + LASTING,
        f"svc_speech_backend_failures_in_a_row{{{SECOND}}}": "0+0" + LASTING,
        f"svc_speech_backend_last_failure_timestamp_seconds{{{BACKEND}}}": "200+0" + LASTING,
        f"svc_speech_backend_last_answer_timestamp_seconds{{{SECOND}}}": "100+0" + LASTING,
    },
    "SvcNeuralVoicesSlow": {f"svc_speech_neural_real_time_factor{{{WORKER}}}": "1.2+0" + LASTING},
}
"""For each alert the series, a value a minute, that make it and no other fire at the end."""

SILENT: dict[str, dict[str, str]] = {
    "a restart long ago": {f"svc_worker_restarts_total{{{WORKER}}}": "0+0x10 2+0x60"},
    "another program's files": {
        'process_open_fds{job="node",instance="a:9100"}': "1000+0" + LASTING,
        'process_max_fds{job="node",instance="a:9100"}': "1024+0" + LASTING,
    },
    "another program that is down": {'up{job="node",instance="a:9100"}': "0+0" + LASTING},
    "a database that was away for a minute": {f"svc_ledger_database_up{{{WORKER}}}": "1+0x68 0 0"},
    "a backend that one of two workers has ejected, and that has answered the other since": {
        f"svc_backend_ejected{{{BACKEND}}}": "1+0" + LASTING,
        f"svc_backend_failures_in_a_row{{{BACKEND}}}": "9+0" + LASTING,
        f"svc_backend_last_failure_timestamp_seconds{{{BACKEND}}}": "200+0" + LASTING,
        f"svc_backend_last_answer_timestamp_seconds{{{SECOND}}}": "300+0" + LASTING,
    },
    "a speech server that one of two workers cannot reach": {
        f"svc_speech_backend_failures_in_a_row{{{BACKEND}}}": "9+0" + LASTING,
        f"svc_speech_backend_last_failure_timestamp_seconds{{{BACKEND}}}": "200+0" + LASTING,
        f"svc_speech_backend_last_answer_timestamp_seconds{{{SECOND}}}": "300+0" + LASTING,
    },
    "errors of clients": {
        f'svc_requests_total{{{ROUTE},status="404",code="model_not_found"}}': "0+9" + LASTING
    },
    "speech whose clients disconnect": {
        f'svc_speech_outcomes_total{{{WORKER},engine="espeak",outcome="client_disconnected"}}': (
            "0+9" + LASTING
        ),
        f'svc_speech_engine_restarts_total{{{WORKER},engine="espeak"}}': "0+9" + LASTING,
    },
    "tokens that were not reported more than an hour ago": {
        f"svc_unreported_tokens_total{{{BACKEND}}}": "40+0" + LASTING
    },
    "connections that were closed at once": {
        f'svc_capacity_refusals_total{{{WORKER},kind="lingering",reason="share"}}': "0+1" + LASTING
    },
}
"""States in which nothing may fire."""


def _assert_firing(
    directory: Path, series: dict[str, str], expected: list[str], interval: str = "1m"
) -> None:
    """Assert which alerts fire after 70 minutes of ``series``, a value each ``interval``."""
    firing = {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": "70m",
        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in expected],
    }
    simulate(directory, series, interval, firing, rule_files=[str(RULES)])


def test_every_alert_is_simulated() -> None:
    assert list(FIRES) == [rule["alert"] for rule in alerts()]


@pytest.mark.parametrize("name", FIRES)
def test_an_alert_fires_in_the_state_that_it_is_for(name: str, tmp_path: Path) -> None:
    _assert_firing(tmp_path, FIRES[name], [name])


@pytest.mark.parametrize("state", SILENT)
def test_no_alert_fires_in_a_state_that_is_none(state: str, tmp_path: Path) -> None:
    _assert_firing(tmp_path, SILENT[state], [])


def test_one_restart_of_a_worker_is_no_alert(tmp_path: Path) -> None:
    """Scrapes that do not fit into the window: ``increase`` extrapolates to more than 1."""
    series = {f"svc_worker_restarts_total{{{WORKER}}}": "0+0x80 1+0x20"}

    _assert_firing(tmp_path, series, [], "45s")
