"""Values of settings: each is read whole, or refused with one line that names its variable."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from core.environment import SettingsEnv, refuse_unknown, state_directory
from tests.support.live import ROOT

BAD = [
    ("SVC_BACKEND_CONNECT_SECONDS", "50 ms", "a unit: 50ms, 90s, 2m, 1h, 1d; not '50 ms'"),
    ("SVC_DRAIN_SECONDS", "2min", "plain digits, or with a unit"),
    ("SVC_DRAIN_SECONDS", "2M", "plain digits, or with a unit"),
    ("SVC_BACKEND_TOTAL_SECONDS", "0ms", "at least 0.001"),
    ("SVC_CAPTURE_HOURS", "90m", "from 24 to"),
    ("SVC_CLIENT_SECONDS", "99999999d", "at most 1000000000"),
    ("SVC_DRAIN_SECONDS", "", "is empty"),
    ("SVC_BACKEND_TOTAL_SECONDS", "1e3", "in plain digits"),
    ("SVC_BACKEND_TOTAL_SECONDS", "abc5", "in plain digits"),
    ("SVC_BACKEND_TOTAL_SECONDS", "0", "at least 0.001"),
    ("SVC_BACKEND_TOTAL_SECONDS", "nan", "in plain digits"),
    ("SVC_BACKEND_TOTAL_SECONDS", "1_000", "in plain digits"),
    ("SVC_ORGANIZATION_SHARE", "25%", "without a unit"),
    ("SVC_ORGANIZATION_SHARE", "25", "from 0.001 to 1"),
    ("SVC_SAMPLED_FRACTION", "7", "from 0 to 1"),
    ("SVC_SESSION_HOURS", "-1", "in plain digits"),
    ("SVC_CAPTURE_HOURS", "23.9", "from 24 to 87600"),
    ("SVC_MAX_INFLIGHT", "-1", "a whole number"),
    ("SVC_MAX_INFLIGHT", "2.5", "a whole number"),
    ("SVC_WORKER", "x", "is set by svc for its own processes"),
    ("SVC_WORKERS", "four", "a whole number"),
    ("SVC_WORKERS", "0", "from 1 to 1024"),
    ("SVC_DJANGO_THREADS", "1", "from 2 to 1024"),
    ("SVC_SPEECH_WORKERS", "20000", "from 1 to 1024"),
    ("SVC_WORKER_BLOCKED_SECONDS", "50ms", "0, or at least 5"),
    ("SVC_HTTPS_ONLY", "enabled", "true or false"),
    ("SVC_HTTPS_ONLY", "yess", "true or false"),
    ("DEBUG", "2", "true or false"),
    ("SVC_REQUESTS_PER_MINUTE", "-5", 'or "unlimited"'),
    ("SVC_REQUESTS_PER_MINUTE", "²", 'or "unlimited"'),
    ("LOG_LEVEL", "VERBOSE", "one of DEBUG, INFO"),
    ("DATABASE_URL", "mysql://x/y", "postgres://"),
    ("DATABASE_URL", "postgres:/oops", "postgres://"),
    ("REDIS_URL", "cache:6379", "redis://"),
    ("EMAIL_URL", "mail.example", "smtp://"),
    ("SECRET_KEY_FILE", "/nonexistent", "cannot be read: No such file"),
    ("SVC_METRICS_TOKEN", "a\nb", "control character"),
    ("SVC_DATA_DIR", "/proc/none/var", "cannot be made a directory"),
    ("SVC_DATA_DIR", "~/svc", "a whole path, which begins with /, not '~/svc'"),
    ("SVC_NEURAL_DIR", "voices", "a whole path"),
    ("DATABASE_URL", "postgres://h:bad/x", "a port from 1 to 65535"),
    ("DATABASE_URL", "postgres://u:p@h:5432", "without the name of a database"),
    ("DATABASE_URL", "sqlite:///nonexistent/dir/x.db", "nonexistent/dir is no directory"),
    ("DATABASE_URL", "sqlite:////tmp", "/tmp is a directory"),
    ("EMAIL_URL", "smtp://h:bad", "a port from 1 to 65535"),
    ("EMAIL_URL", "smtp+tls://", "smtp+tls://USER:PASSWORD@HOST:PORT"),
    ("REDIS_URL", "redis://h:bad", "a port from 1 to 65535"),
    ("REDIS_URL", "redis://h:70000", "a port from 1 to 65535"),
    ("REDIS_URL", "redis://h/notanumber", "redis://USER:PASSWORD@HOST:PORT/NUMBER"),
    ("REDIS_URL", "rediss://", "rediss://USER:PASSWORD@HOST:PORT/NUMBER"),
    ("REDIS_URL", "unix://", "unix:///PATH"),
    ("REDIS_URL", "redis://h?db=nan", "db=nan in the address must be a number"),
    ("REDIS_URL", "redis://h/0?socket_timeout=nan", "socket_timeout=nan in the address"),
    ("REDIS_URL", "unix:///run/redis.sock?db=-1", "db=-1 in the address"),
    ("SVC_JOURNAL_MAX_BYTES", "1", "must be 0, or at least 1048576"),
    ("SVC_ADMISSION_LEASE_SECONDS", "1ms", "at least 1"),
    ("SVC_DRAIN_SECONDS", "90\u00a0", r"not '90\xa0'"),
    ("SVC_WORKERS", "\u20034", r"not '\u20034'"),
    ("SVC_DEFAULT_CURRENCY", "dollars", "ISO 4217"),
    ("SVC_DEFAULT_CURRENCY", "-1", "ISO 4217"),
    ("SVC_DEFAULT_CURRENCY", "usd", "ISO 4217"),
    ("SVC_DEFAULT_CURRENCY", "", "ISO 4217"),
    ("SVC_REQUESTS_PER_MINUTE", "99999999999", "at most 2147483647"),
    ("SVC_SESSION_HOURS", "999999999999", "from 0.1 to 8760"),
    ("SVC_CAPTURE_HOURS", "999999999999", "from 24 to 87600"),
    ("SVC_CLIENT_SECONDS", "999999999999", "at most 1000000000"),
    ("SVC_VIEW_STATEMENT_SECONDS", "9999999", "from 0 to 1000000"),
    ("SVC_PUBLIC_URL", "http://x:99999", "https://ai.example.com"),
    ("SVC_PUBLIC_URL", "ai.example.com", "must be the address"),
    ("SVC_PUBLIC_URL", "ftp://ai.example.com", "must be the address"),
    ("SVC_PUBLIC_URL", "https://", "must be the address"),
    ("SVC_PUBLIC_URL", "https://ai.example.com/console", "must be the address"),
    ("SVC_PUBLIC_URL", "https://ai.example.com?x=1", "must be the address"),
    ("SVC_PUBLIC_URL", "https://me:secret@ai.example.com", "must be the address"),
    ("SVC_PUBLIC_URL", "https://ai.example.com:port", "must be the address"),
    ("SVC_PUBLIC_URL", "https://*.example.com", "must be the address"),
    ("SVC_PUBLIC_URL", "https://ai.example.com\nx", "holds a line end"),
    ("ALLOWED_HOSTS", "https://a", "without a scheme"),
    ("ALLOWED_HOSTS", "a.example.com:8000", "without a scheme, a port or a path"),
    ("SPEECH_HOSTS", "a.example.com,b/c", "not 'b/c'"),
    ("SVC_METRICS_TOKEN", " ", "holds only blanks"),
    ("SVC_METRICS_TOKEN", "token ", "begins or ends with a blank"),
    ("SVC_EMAIL_FROM", "svc", "must be svc@example.com, or"),
    ("ALLOWED_HOSTS", "", "names no host"),
    ("SECRET_KEY", "  ", "holds only blanks"),
    ("SVC_KEY_PEPPERS", ",", "holds only blanks or commas"),
    ("SVC_CLONE_KEYS", " , ", "holds only blanks or commas"),
    ("SVC_SPECH_PORT", "9001", "The nearest one is SVC_SPEECH_PORT"),
    ("SVC_DRAIN_SECOND", "90", "The nearest one is SVC_DRAIN_SECONDS"),
    ("SVC_DRAIN_SECOND_FILE", "/x", "The nearest one is SVC_DRAIN_SECONDS"),
    (
        "SVC_HEAD_SECOND",
        "9",
        "The nearest one, SVC_HEAD_SECONDS, was one: SVC_CLIENT_SECONDS replaces it.",
    ),
]
GOOD = [
    ("SVC_DRAIN_SECONDS", "2.5"),
    ("SVC_DRAIN_SECONDS", " 90 "),
    ("SVC_JOURNAL_MAX_BYTES", "0"),
    ("SVC_BACKEND_CONNECT_SECONDS", "50ms"),
    ("SVC_CAPTURE_HOURS", "3d"),
    ("SVC_HTTPS_ONLY", "On"),
    ("SVC_SPEECH_SESSION_SECONDS", "0"),
    ("SVC_WORKER_BLOCKED_SECONDS", "0"),
    ("SVC_SPEECH_MESSAGES_PER_SECOND", "0"),
    ("SVC_MAX_ARRIVING", "anything: it was a setting"),
    ("SVC_REQUESTS_PER_MINUTE", "unlimited"),
    ("SVC_TOKENS_PER_MINUTE", "99999999999"),
    ("SVC_SPEECH_CHARACTERS_PER_DAY", "99999999999"),
    ("DATABASE_URL", "sqlite:///x"),
    ("DATABASE_URL", "postgres://u:p#x@h:5432/d"),
    ("DATABASE_URL", "postgres://%2Fvar%2Frun%2Fpostgresql/d"),
    ("DATABASE_URL", "postgres:///d"),
    ("DATABASE_URL", "postgres://a:5432,b:5433/d"),
    ("DATABASE_URL", "sqlite://:memory:"),
    ("REDIS_URL", "rediss://:secret@h:6380/1?ssl_cert_reqs=none"),
    ("REDIS_URL", "redis://[::1]"),
    ("REDIS_URL", "redis:///1"),
    ("REDIS_URL", "redis://h:6379/0/"),
    ("DATABASE_URL", "postgres:///?service=svc"),
    ("SVC_SPEECH_PORT", "tcp://10.0.0.7:8001"),
    ("REDIS_URL", "unix:///run/redis.sock?db=1"),
    ("EMAIL_URL", "smtp+tls://u%40h:p@h:587"),
    ("EMAIL_URL", "consolemail://"),
    ("SVC_EMAIL_FROM", "Acme AI <svc@ai.example.com>"),
    ("ALLOWED_HOSTS", "*,.example.com,A.example.com,10.0.0.1,[::1]"),
    ("SVC_DEFAULT_CURRENCY", "EUR"),
    ("SVC_PUBLIC_URL", "http://[::1]:65535/"),
    ("SVC_KEY_PEPPER", "s" * 40),
    ("SVC_BACKEND_KEY_GPU1", "secret"),
    ("SVC_KEY", "svc_live_of_a_client"),
    ("SVC_VOICE", "ava"),
    ("SVC_PORT", "tcp://10.0.0.1:8000"),
    ("SVC_PORT_8000_TCP_ADDR", "10.0.0.1"),
    ("SVC_SPEAKER_PORT", "udp://10.0.0.1:8000"),
    ("SVC_SERVICE_HOST", "10.0.0.1"),
    ("SVC_REDIS_SERVICE_PORT_MAIN", "6379"),
]
"""The last five are what Kubernetes sets in a container beside Services called svc, svc-speaker and
svc-redis."""

READ_EACH = """
import json, os, runpy, sys
found = []
for name, value in json.load(sys.stdin):
    before = dict(os.environ)
    os.environ[name] = value
    try:
        runpy.run_module("svc_project.settings")
        found.append("")
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}")
    os.environ.clear()
    os.environ.update(before)
print(json.dumps(found))
"""


def outcomes(cases: list[tuple[str, str]], directory: Path) -> list[str]:
    """How reading the settings ended with each of ``cases``; "" where they were read."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    done = subprocess.run(
        [sys.executable, "-c", READ_EACH],
        input=json.dumps(cases),
        env={**kept, "SVC_DATA_DIR": str(directory)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)
    return found


def test_variables_of_clients_in_the_documentation_are_not_taken_for_settings(
    tmp_path: Path,
) -> None:
    used = re.compile(r"""(?:\$\{?|environ\["|process\.env\.)(SVC_\w+)""")
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docs/examples").glob("*.py"),
        ROOT / "README.md",
    ]
    named = sorted({name for page in pages for name in used.findall(page.read_text())})
    assert {"SVC_API_KEY", "SVC_READ_KEY", "SVC_SPEECH_KEY"} <= set(named)

    found = outcomes([(name, "/x") for name in named], tmp_path)

    assert not [said for said in found if "is no setting" in said]


def test_a_bad_value_is_refused_with_one_line_that_names_it(tmp_path: Path) -> None:
    found = outcomes([(name, value) for name, value, _ in BAD], tmp_path)
    wrong = [
        (name, value, said)
        for (name, value, expected), said in zip(BAD, found, strict=True)
        if not said.startswith(f"ImproperlyConfigured: {name}")
        or expected not in said
        or "\n" in said
    ]
    assert wrong == []


def test_a_good_value_is_read(tmp_path: Path) -> None:
    found = outcomes(GOOD, tmp_path)
    assert dict(zip(GOOD, found, strict=True)) == dict.fromkeys(GOOD, "")


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("DRAIN_SECONDS", "50ms", 0.05),
        ("DRAIN_SECONDS", "2m", 120),
        ("DRAIN_SECONDS", "2", 2),
        ("CAPTURE_HOURS", "3d", 72),
        ("CAPTURE_HOURS", "90s", 0.025),
        ("CAPTURE_HOURS", "2", 2),
    ],
)
def test_a_duration_is_in_the_unit_of_its_name_where_it_has_none(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str, value: float
) -> None:
    monkeypatch.setenv(name, given)
    assert SettingsEnv().number(name) == pytest.approx(value)


def test_blanks_around_a_listed_host_are_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_EXAMPLE", " a.example.com, B.example.com,")
    assert SettingsEnv().hosts("SVC_EXAMPLE") == ["a.example.com", "b.example.com"]


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("SVC_HTTPS_ONLY", "enabled", "SVC_HTTPS_ONLY must be true or false, not 'enabled'."),
        ("SVC_SPEECH_PORT", "70000", "A port must be a number from 0 to 65535, not 70000."),
    ],
)
def test_a_command_ends_with_one_line_and_status_2(
    tmp_path: Path, name: str, value: str, line: str
) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "serve", "--port", "0"],
        check=False,
        env={**os.environ, "SVC_DATA_DIR": str(tmp_path), name: value},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == f"svc: {line}\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_secret_in_a_file_has_no_line_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
) -> None:
    """As docs/operate/production.md makes one: ``python3 -c 'print(...)' > FILE``."""
    kept = tmp_path / "token"
    kept.write_bytes(f"a secret{end}".encode())
    monkeypatch.setenv("SVC_EXAMPLE_FILE", str(kept))
    assert SettingsEnv().str("SVC_EXAMPLE", default="") == "a secret"


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_what_a_secret_with_the_line_end_of_its_file_has_made_is_still_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
) -> None:
    """Up to 0.5 it was part of the secret: every API key would be refused after the upgrade."""
    kept = tmp_path / "peppers"
    kept.write_bytes(f"new,old{end}".encode())
    monkeypatch.setenv("SVC_EXAMPLES_FILE", str(kept))
    assert SettingsEnv().secrets("SVC_EXAMPLES") == ["new", "old", *(["old\n"] if end else [])]


@pytest.mark.parametrize("content", [b"a\nb\n", b"a\0b", b"\n\n", b"\xff"])
def test_a_secret_that_no_header_can_carry_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    kept = tmp_path / "token"
    kept.write_bytes(content)
    monkeypatch.setenv("SVC_EXAMPLE_FILE", str(kept))
    with pytest.raises(ImproperlyConfigured, match="SVC_EXAMPLE"):
        SettingsEnv().str("SVC_EXAMPLE", default="")


def test_a_listed_variable_of_a_backends_key_may_have_any_name() -> None:
    refuse_unknown({"SVC_OTHER": "x"}, {"SVC_DRAIN_SECONDS", "SVC_OTHER"}, "SVC_BACKEND_KEY_")
    with pytest.raises(ImproperlyConfigured, match="SVC_OTHER is no setting"):
        refuse_unknown({"SVC_OTHER": "x"}, {"SVC_DRAIN_SECONDS"}, "SVC_BACKEND_KEY_")


@pytest.mark.parametrize(
    ("home", "state_home", "directory"),
    [
        ("/home/ann", None, "/home/ann/.local/state/svc"),
        ("/home/ann", "/srv/state", "/srv/state/svc"),
        ("~", None, "/var/lib/svc"),
    ],
)
def test_data_of_an_installation_are_where_the_user_keeps_such(
    monkeypatch: pytest.MonkeyPatch, home: str, state_home: str | None, directory: str
) -> None:
    """A user without an entry, as a number that a container runs as, has no home."""
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    if state_home is not None:
        monkeypatch.setenv("XDG_STATE_HOME", state_home)
    assert state_directory() == Path(directory)
