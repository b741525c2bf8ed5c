"""The settings that an operator can give, each with its default and its meaning.

``settings.py`` reads them, in the kind and within the bounds that it names. ``manage.py describe_settings``
writes docs/settings.md from this table, and a name with the prefix of the settings that is not in it
is refused as misspelt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Setting:
    """An environment variable.

    ``default`` is written as an operator would write it; "" where the variable has no value, or one that
    is computed. ``shown`` says in the page what then applies. ``help`` is Markdown.
    """

    name: str
    default: str
    help: str
    shown: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page; ``note`` stands above its table."""

    title: str
    note: str
    settings: tuple[Setting, ...]


SECTIONS: Final = (
    Section(
        "Installation",
        "",
        (
            Setting(
                "SVC_DATA_DIR",
                "",
                "Journal, generated secrets, and the default SQLite database.",
                shown="`var/` of a checkout; [installed](operate/commands.md#install): "
                "`~/.local/state/svc`",
            ),
            Setting(
                "DATABASE_URL",
                "",
                "`postgres://user:password@host:5432/name` or `sqlite:///path`, whose directory "
                "must exist. In a password `#`, `/`, `?` and `@` are written `%23`, `%2F`, `%3F` "
                "and `%40`.",
                shown="SQLite in `SVC_DATA_DIR`",
            ),
            Setting(
                "REDIS_URL",
                "",
                "`redis://:password@host:6379/0`, `rediss://` with TLS, or `unix:///path`: limits "
                "shared by several workers. Needed for `--workers` above 1.",
                shown="none: in process",
            ),
            Setting(
                "SECRET_KEY",
                "",
                "Signs sessions. The same on every host.",
                shown="generated once, kept in `SVC_DATA_DIR`",
            ),
            Setting(
                "SVC_KEY_PEPPERS",
                "",
                "Comma-separated; the first digests new API keys, all verify. The same on every "
                "host.",
                shown="generated once, kept in `SVC_DATA_DIR`",
            ),
            Setting(
                "SVC_CAPTURE_KEYS",
                "",
                "Comma-separated; the first encrypts new captures, all decrypt. The same on every "
                "host.",
                shown="generated once, kept in `SVC_DATA_DIR`",
            ),
            Setting(
                "SVC_CLONE_KEYS",
                "",
                "Comma-separated; the first seals new reference clips of clones, all open. The "
                "same on every host.",
                shown="generated once, kept in `SVC_DATA_DIR`",
            ),
            Setting("DEBUG", "false", "Django's debug mode. Never in production."),
            Setting("LOG_LEVEL", "INFO", "Level of the log on standard error."),
            Setting(
                "SVC_REQUEST_LOG",
                "false",
                "A line of JSON for each request on standard output, refused ones too "
                "([request log](operate/request-log.md)).",
            ),
        ),
    ),
    Section(
        "Addresses",
        "",
        (
            Setting(
                "ALLOWED_HOSTS",
                "localhost,127.0.0.1,[::1]",
                "Names of hosts that are served, on both surfaces, separated by commas, without a "
                "scheme or a port. Any other host gets 400, and is named in the log.",
            ),
            Setting("SPEECH_HOSTS", "", "Names of hosts of the speech surface, likewise."),
            Setting(
                "SVC_SPEECH_PORT",
                "8001",
                "The port of the speech surface; `serve --speech-port` sets it.",
            ),
            Setting("SVC_WORKERS", "1", "Worker processes of `serve`, at most 1024."),
            Setting(
                "SVC_HTTPS_ONLY",
                "false",
                "Set it behind a proxy that terminates TLS: `Secure` cookies under `__Host-` "
                "names, HSTS. Where the proxy says `X-Forwarded-Proto: http` a page is redirected "
                "to `https:`, and the API, WebSocket included, answers 400. Every other request "
                "counts as HTTPS.",
            ),
            Setting(
                "SVC_PROXIES",
                "0",
                "How many proxies in front add to `X-Forwarded-For`. The addresses for login "
                "throttling and the audit log are read from there; `0` uses the connection's "
                "address.",
            ),
            Setting(
                "EMAIL_URL",
                "",
                "The mail server that sends links for a new password, as "
                "`smtp+tls://USER:PASSWORD@HOST:587` or `smtp+ssl://...:465`; without it none are "
                "sent. May be given as `EMAIL_URL_FILE`.",
            ),
            Setting(
                "SVC_PUBLIC_URL",
                "",
                "Where people reach the console, as `https://ai.example.com`; without a path. "
                "Links for a new password lead there, mailed ones and those that operators make. "
                "Without it they lead where the request says it came, and a mail is sent only if "
                "`ALLOWED_HOSTS` has that name itself (no `*`, no `.example.com`) and the port is "
                "the gateway's own or none; otherwise the page says to ask an operator. Set it "
                "where mail is sent.",
            ),
            Setting("SVC_EMAIL_FROM", "svc@localhost", "The sender of these mails."),
            Setting(
                "SVC_SESSION_HOURS",
                "12",
                "How long a login to console or admin lasts, at most 8760.",
            ),
        ),
    ),
    Section(
        "Keys and changes",
        "",
        (
            Setting(
                "SVC_KEY_OUTAGE_SECONDS",
                "900",
                "How long a verified key works while the database is away.",
            ),
            Setting(
                "SVC_KEYS_PER_ORGANIZATION",
                "100",
                "How many keys of an organization may be valid at once. Another key is refused; a "
                "rotation that ends the old key now is not.",
            ),
            Setting(
                "SVC_NEW_KEYS_PER_DAY",
                "300",
                "How many keys an organization may make in 24 hours, rotations included. Ended "
                "keys are kept, because their usage is, so this bounds them.",
            ),
        ),
    ),
    Section(
        "Limits of new organizations",
        "A whole number up to 2147483647, of tokens and characters up to 1000000000000000; or `unlimited`.",
        (
            Setting("SVC_REQUESTS_PER_MINUTE", "600", "Chat requests."),
            Setting("SVC_TOKENS_PER_MINUTE", "1000000", "Tokens, prompt and completion."),
            Setting("SVC_SPEECH_REQUESTS_PER_MINUTE", "120", "Speech requests."),
            Setting("SVC_SPEECH_CHARACTERS_PER_DAY", "200000", "Characters spoken in a UTC day."),
            Setting(
                "SVC_REFUSED_REQUESTS_PER_MINUTE",
                "60",
                "Invalid requests (400, 404, 413), and 2000 characters each that sessions "
                "received and did not speak, that a key may send per surface and worker; an "
                "organization four times as many with all of its keys; for every organization, "
                "new or not. Keys of an organization with a higher request limit may have as many "
                "refused ([limits](explain/limits.md)).",
            ),
        ),
    ),
    Section(
        "Voice clones",
        "",
        (
            Setting(
                "SVC_CLONES_PER_HOUR",
                "60",
                "Voice clones that an organization may create in an hour, or `unlimited`. Applies "
                "to every organization.",
            ),
        ),
    ),
    Section(
        "Backends",
        "",
        (
            Setting(
                "SVC_BACKEND_KEY_VARIABLES",
                "",
                "Comma-separated names of variables that may hold backends' keys, besides those "
                "that begin with `SVC_BACKEND_KEY_`. No setting of this page is allowed "
                "([operators](operate/operators.md#backends-and-their-keys)).",
            ),
            Setting(
                "SVC_BACKEND_PRIVATE_ADDRESSES",
                "true",
                "Whether backends may have private and loopback addresses. `false` leaves public "
                "ones only. Link-local, metadata, unspecified and multicast addresses are refused "
                "always ([backends](explain/backends.md)).",
            ),
            Setting("SVC_BACKEND_CONNECT_SECONDS", "2", "Timeout to open a connection."),
            Setting("SVC_BACKEND_FIRST_BYTE_SECONDS", "60", "Timeout until an answer begins."),
            Setting("SVC_BACKEND_IDLE_SECONDS", "30", "Timeout between two pieces of an answer."),
            Setting("SVC_BACKEND_TOTAL_SECONDS", "600", "Timeout of a whole exchange."),
            Setting(
                "SVC_BACKEND_QUEUE_LENGTH",
                "64",
                "Requests that wait for a slot, per backend and worker.",
            ),
            Setting("SVC_BACKEND_QUEUE_SECONDS", "5", "How long they wait."),
            Setting(
                "SVC_BACKEND_EJECT_AFTER",
                "5",
                "Failures in a row that eject a backend, except server errors for a single caller "
                "([backends](explain/backends.md)); 0: never.",
            ),
            Setting(
                "SVC_BACKEND_CHECK_SECONDS",
                "0",
                "How often ejected backends are probed with `GET /models`; then no client's "
                "request serves as the probe.",
                shown="`0`: off",
            ),
            Setting(
                "SVC_DISCONNECT_DRAIN_SECONDS",
                "30",
                "How long an answer is read further for its token counts when its client has "
                "disconnected and the backend has no running usage; a backend may override it.",
            ),
        ),
    ),
    Section(
        "Speech",
        "",
        (
            Setting(
                "SVC_SPEECH_FIRST_BYTE_SECONDS",
                "10",
                "Timeout until a speech backend's first audio, and between pieces of it; a "
                "backend may override it.",
            ),
            Setting(
                "SVC_SPEECH_TOTAL_SECONDS",
                "60",
                "Timeout of a speech backend for one sentence; a backend may override it.",
            ),
            Setting(
                "SVC_SPEECH_WORKERS",
                "2",
                "Processes of the embedded engine, per worker of `serve`, at most 1024.",
            ),
            Setting(
                "SVC_NEURAL_DIR",
                "",
                "Where `manage.py install_neural_voices` puts the files of the [neural "
                "engine](explain/neural-engine.md).",
                shown="`share/svc-neural` of the virtual environment",
            ),
            Setting(
                "SVC_NEURAL_WORKERS",
                "1",
                "Processes of the neural engine, per worker of `serve`, at most 1024; each takes up to "
                "0.6 GB.",
            ),
            Setting(
                "SVC_NEURAL_THREADS",
                "",
                "Threads of each of them, at most 1024.",
                shown="cores / `SVC_WORKERS`, 1 to 4",
            ),
            Setting(
                "SVC_SPEECH_IDLE_SECONDS",
                "30",
                "Timeout on a WebSocket without text or a sentence to speak, before `done`.",
            ),
            Setting(
                "SVC_SPEECH_SESSION_SECONDS",
                "3600",
                "Maximum duration of a WebSocket session; 0: no bound.",
            ),
            Setting(
                "SVC_SPEECH_MESSAGES_PER_SECOND",
                "100",
                "Messages of one session that are processed per second; the others wait. A burst "
                "may have ten seconds' worth; 0: no bound.",
            ),
        ),
    ),
    Section(
        "Serving",
        "",
        (
            Setting(
                "SVC_MAX_INFLIGHT",
                "2000",
                "Admitted requests that one worker holds at once; above it 503. As many may arrive with "
                "a key at once, half as many WebSockets may wait for `start`, a fifth as many refused "
                "requests may have their remaining bodies read (for up to 2 seconds), and a twentieth "
                "as many pages may show live requests ([limits](explain/limits.md#capacity)).",
            ),
            Setting(
                "SVC_MAX_SPEECH_SESSIONS", "1000", "WebSocket sessions of one worker; above it 503."
            ),
            Setting(
                "SVC_ORGANIZATION_SHARE",
                "0.25",
                "The share of each bound of this section that one organization may hold; callers "
                "without a key have one share together. Set `1` for a single organization.",
            ),
            Setting(
                "SVC_MEMORY_BYTES",
                "1342177280",
                "Bytes that one worker holds at once of request bodies (a fifth) and of speech: "
                "complete files until they are sent, and frames of sessions (four fifths); above it "
                "503. One file of half an hour takes 86 MB until it is encoded, so "
                "`SVC_ORGANIZATION_SHARE` of four fifths must be more than that.",
            ),
            Setting(
                "SVC_CLIENT_SECONDS",
                "30",
                "How long a client may take: to send a request's line and headers, and its body "
                "(above it 408); to read the [answer of a "
                "page](explain/limits.md#pages-catalog-and-usage); and to read on in an answer, after "
                "which it is disconnected and a [WebSocket session](api/speech.md#a-reader-that-stalls) "
                "ended.",
            ),
            Setting(
                "SVC_MAX_CONNECTIONS",
                "10000",
                "Connections of one worker; above it 503 and closed.",
            ),
            Setting(
                "SVC_DJANGO_THREADS",
                "6",
                "Requests of one worker for pages, the catalog and usage that are answered at "
                "once, each in a thread with at most one database connection; 2 to 1024. Others wait "
                "for up to 5 seconds. With "
                "one worker these threads take the interpreter from chats and speech when they "
                "are busy; with several they are in the [page "
                "process](operate/production.md#workers). A third, at least one, is for strangers "
                "([limits](explain/limits.md#pages-catalog-and-usage)).",
            ),
            Setting(
                "SVC_VIEW_STATEMENT_SECONDS",
                "30",
                "Timeout for one database statement of such a request, on PostgreSQL; after it "
                "503. At most 1000000. `0`: as the database sets it, [behind a "
                "pooler](operate/postgresql.md#connections). CSV downloads of usage have [their "
                "own bounds](#metering).",
            ),
            Setting(
                "SVC_DRAIN_DELAY_SECONDS",
                "0",
                "How long the server is unready but serves as before after SIGTERM.",
            ),
            Setting(
                "SVC_METRICS_TOKEN",
                "",
                "Bearer token for `GET /metrics`. Without it only this host may read, as "
                "`localhost` or `127.0.0.1`, and no client while `SVC_PROXIES` is above 0.",
            ),
            Setting(
                "SVC_WORKER_BLOCKED_SECONDS",
                "60",
                "How long a worker's event loop may be blocked before the "
                "parent kills and replaces it ([processes](operate/production.md#workers)), at least "
                "5. Starting does not count. `0`: never.",
            ),
            Setting(
                "SVC_DRAIN_SECONDS",
                "660",
                "Time for running requests and sessions to finish after SIGTERM, or after a "
                "[reload](operate/production.md#reload); the longest answer fits. What runs then is "
                "ended, and the process too. A process ends earlier when nothing runs.",
            ),
        ),
    ),
    Section(
        "Metering",
        "",
        (
            Setting(
                "SVC_SAMPLED_FRACTION",
                "0.01",
                "Fraction of requests that are counted independently.",
            ),
            Setting(
                "SVC_DEFAULT_CURRENCY",
                "USD",
                "Currency of an empty period: the three capital letters of ISO 4217.",
            ),
            Setting(
                "SVC_BILLING_ENABLED",
                "false",
                "Whether amounts are charged: `pricing.billing_enabled` of the usage summary.",
            ),
            Setting(
                "SVC_DURABLE_ADMISSIONS",
                "false",
                "PostgreSQL, for hosts without a lasting disk: a request is dispatched only when "
                "its admission is [committed in the "
                "database](explain/metering.md#hosts-without-a-lasting-disk). While the database "
                "is away, requests are refused.",
            ),
            Setting(
                "SVC_ADMISSION_LEASE_SECONDS",
                "600",
                "The lease after which a silent process that [has admissions in the "
                "database](explain/metering.md#admissions-in-the-database) is taken for dead and "
                "another closes its requests; a second at least.",
            ),
            Setting(
                "SVC_JOURNAL_MAX_BYTES",
                "1073741824",
                "Bound of one process's journal, 1048576 at least; 0: none is kept, so that no "
                "request is taken while the database is away.",
            ),
            Setting(
                "SVC_EXPORT_DOWNLOADS",
                "8",
                "How many [CSV downloads](api/usage-export.md#csv) may run at once on one host, "
                "half of them of one organization. Each holds a database connection.",
            ),
            Setting(
                "SVC_THROTTLE_COUNTERS",
                "true",
                "Counts and lists refused requests. While it is off the counts are `unavailable` in "
                "the summary and the console, and stay so for those hours.",
            ),
            Setting("SVC_CAPTURE_HOURS", "72", "Retention of diagnostic captures, 24 to 87600."),
        ),
    ),
)

SETTINGS: Final = {each.name: each for section in SECTIONS for each in section.settings}

REMOVED: Final = {
    "SVC_BODY_SECONDS": "SVC_CLIENT_SECONDS replaces it.",
    "SVC_CLIENT_STALL_SECONDS": "SVC_CLIENT_SECONDS replaces it.",
    "SVC_HEAD_SECONDS": "SVC_CLIENT_SECONDS replaces it.",
    "SVC_MAX_BODY_BYTES_INFLIGHT": "A fifth of SVC_MEMORY_BYTES replaces it.",
    "SVC_MAX_SOUND_BYTES": "Four fifths of SVC_MEMORY_BYTES replace it.",
    "SVC_WORKER_SILENCE_SECONDS": "SVC_WORKER_BLOCKED_SECONDS replaces it.",
    "SVC_MAX_ARRIVING": "It is SVC_MAX_INFLIGHT.",
    "SVC_MAX_LINGERING": "It is a fifth of SVC_MAX_INFLIGHT.",
    "SVC_MAX_UNSTARTED_SESSIONS": "It is half of SVC_MAX_INFLIGHT.",
    "SVC_MAX_WATCHERS": "It is a twentieth of SVC_MAX_INFLIGHT.",
    "SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION": "It is half of SVC_EXPORT_DOWNLOADS.",
    "SVC_BACKEND_RESERVED_SHARE": "It is 0.125, and 0 where SVC_ORGANIZATION_SHARE is 1.",
    "SVC_LEDGER_SYNCHRONOUS_COMMIT": "It is always true.",
    "SVC_BACKEND_EJECT_SECONDS": "It is 5.",
    "SVC_CAPTURES_PER_HOUR": "It is 20.",
    "SVC_CAPTURE_BYTES": "It is 1000000.",
    "SVC_CAPTURE_BYTES_PER_ORGANIZATION": "It is 67108864.",
    "SVC_CHANGE_POLL_SECONDS": "It is 0.25.",
    "SVC_DJANGO_QUEUE_LENGTH": "It is 256.",
    "SVC_DJANGO_QUEUE_SECONDS": "It is 5.",
    "SVC_EXPORT_BYTES_PER_SECOND": "It is 65536.",
    "SVC_EXPORT_SECONDS": "It is 3600.",
    "SVC_KEY_CACHE_SECONDS": "Every worker holds all working keys.",
    "SVC_LEDGER_ANSWER_SECONDS": "It is 0.25.",
    "SVC_LIMIT_STORE_SECONDS": "It is 0.25.",
    "SVC_MAX_CLONE_CREATIONS": "It is 128.",
    "SVC_POISON_DEATHS": "It is 2.",
    "SVC_POISON_SECONDS": "It is 300.",
    "SVC_RECONCILIATION_FLOOR_TOKENS": "It is a table in docs/explain/metering.md.",
    "SVC_RECONCILIATION_TOLERANCE": "It is a table in docs/explain/metering.md.",
    "SVC_SPEECH_START_SECONDS": "It is 10.",
    "SVC_THROTTLE_FLUSH_SECONDS": "It is 2.",
    "SVC_WEBSOCKET_PING_SECONDS": "It is 20.",
}
"""Settings of earlier releases, which have no effect where they are still given, and what applies instead."""

_INTRODUCTION: Final = """# Settings

All settings are environment variables; `NAME_FILE` may name a file that holds the value instead, whose last line end is no part of
it. Numbers are plain digits (`0.05`, `90`). Durations may have a unit (`50ms`, `90s`, `2m`, `1h`, `1d`); without one they are in that of
their name. Directories are whole paths, from `/` on. Switches are `true`, `1`, `yes`, `on` or `false`, `0`, `no`, `off`. A number that
may be a fraction is at most 1000000000 where nothing else is said. A value that is none, one of blanks or commas alone, and a name with `SVC_` that
is no setting end every command with one line and status 2. A setting of an earlier release that there is no more has no effect, and
`manage.py check` says what replaces it. What Kubernetes sets beside a Service called `svc-...` is passed over:
`SVC_..._PORT` only with a value such as `tcp://10.0.0.1:80`.

`manage.py describe_settings` writes this page from `svc_project/operator_settings.py`.
"""


def page() -> str:
    """docs/settings.md, in Markdown."""
    return "\n".join([_INTRODUCTION, *(_part(section) for section in SECTIONS)])


def _part(section: Section) -> str:
    rows = [f"| `{each.name}` | {_shown(each)} | {each.help} |" for each in section.settings]
    note = [section.note, ""] if section.note else []
    table = ["| Name | Default | Meaning |", "|---|---|---|", *rows, ""]
    return "\n".join([f"## {section.title}", "", *note, *table])


def _shown(setting: Setting) -> str:
    return setting.shown or (f"`{setting.default}`" if setting.default else "none")
