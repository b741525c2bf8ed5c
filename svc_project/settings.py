"""All settings of the project, read from the environment.

``operator_settings`` has what an operator can give, with its default and its meaning; every other value is
a constant. A variable may also be given as ``NAME_FILE``, the path of a file that holds the value.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from core import variables
from core.database.address import described
from core.environment import SettingsEnv, made_once, refuse_unknown, state_directory
from svc_project import operator_settings

# Where templates, static files and catalogs of the demo are: a wheel has them inside this package.
_SHIPPED = Path(__file__).resolve().parent / "shipped"
SVC_IS_INSTALLED = _SHIPPED.is_dir()
BASE_DIR = _SHIPPED if SVC_IS_INSTALLED else Path(__file__).resolve().parent.parent

env = SettingsEnv({each.name: each.default for each in operator_settings.SETTINGS.values()})

VERSION = re.search(  # type: ignore[union-attr]  # the changelog always has a version heading
    r"^## \[(\d[^\]]*)\]", (BASE_DIR / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
).group(1)

DEBUG = env.flag("DEBUG")

SVC_DATA_DIR = env.directory(
    "SVC_DATA_DIR", default=state_directory() if SVC_IS_INSTALLED else BASE_DIR / "var"
)


# Names of the secrets that were not given, for the system checks (svc_project.checks).
SVC_MADE_UP_SECRETS: list[str] = []


def _secret(name: str) -> str:
    """A secret from the environment, or one generated once and kept in the data directory."""
    if given := env.str(name, default=""):
        return str(given)
    SVC_MADE_UP_SECRETS.append(name)
    return made_once(SVC_DATA_DIR / f"{name.lower()}.secret")


SECRET_KEY = _secret("SECRET_KEY")

# The first pepper digests new keys; the others still verify older ones until they are rotated.
SVC_KEY_PEPPERS: list[str] = env.secrets("SVC_KEY_PEPPERS") or [_secret("SVC_KEY_PEPPER")]
# The first key encrypts new captures; the others still decrypt older ones.
SVC_CAPTURE_KEYS: list[str] = env.secrets("SVC_CAPTURE_KEYS") or [_secret("SVC_CAPTURE_KEY")]
# The first key seals new reference clips of clones; the others still open older ones.
SVC_CLONE_KEYS: list[str] = env.secrets("SVC_CLONE_KEYS") or [_secret("SVC_CLONE_KEY")]

ALLOWED_HOSTS: list[str] = env.hosts("ALLOWED_HOSTS", needed=True)
# Where people reach the console: mailed links lead there.
SVC_PUBLIC_URL = env.origin("SVC_PUBLIC_URL")
SPEECH_HOSTS: list[str] = env.hosts("SPEECH_HOSTS")
SVC_SPEECH_PORT = env.whole("SVC_SPEECH_PORT", least=1, most=65535)
SVC_WORKERS = env.whole("SVC_WORKERS", least=1, most=1024)

# Daphne gives ``runserver`` its ASGI server. Every other process would pay for loading it with a fifth of
# its start and 19 MB.
_DEVELOPMENT_SERVER = ["daphne"] if "runserver" in sys.argv[1:2] else []

INSTALLED_APPS = [
    *_DEVELOPMENT_SERVER,
    "svc_project.admin.config.OperationsAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "django_filters",
    "svc_project",
    "accounts",
    "usage",
    "inference",
    "speech",
]

MIDDLEWARE = [
    "svc_project.middleware.RequestIdMiddleware",
    "svc_project.middleware.CompressionMiddleware",
    "svc_project.middleware.HttpsOnlyMiddleware",
    "svc_project.middleware.PageHeadersMiddleware",
    "svc_project.middleware.SurfaceMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "svc_project.middleware.KnownCallerMiddleware",
    "svc_project.middleware.SlowStatementMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.audit.trail.AuditMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "svc_project.urls"
ASGI_APPLICATION = "svc_project.asgi.application"
AUTH_USER_MODEL = "accounts.User"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["accounts.console.addresses"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": described(
        env.address(
            "DATABASE_URL",
            ("postgres", "postgresql", "psql", "pgsql", "sqlite"),
            default=f"sqlite:///{SVC_DATA_DIR / 'svc.sqlite3'}",
        ),
        test_file=SVC_DATA_DIR / "test.sqlite3",
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL: str = env.address("REDIS_URL", ("redis", "rediss", "unix"))
CHANNEL_LAYERS = (
    {
        "default": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            # Its blocking reads take 5 s, which is also redis-py's own timeout: they would often fail.
            # Processes join again every 10 s; one that has ended would get messages for a day.
            "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": 15}], "group_expiry": 60},
        }
    }
    if REDIS_URL
    else {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
)

_VALIDATION = "django.contrib.auth.password_validation."
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATION}UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATION}MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": f"{_VALIDATION}CommonPasswordValidator"},
]
LOGIN_URL = "console-login"
LOGIN_REDIRECT_URL = "console"
CSRF_FAILURE_VIEW = "accounts.console.base.stale_form"

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "svc_project.admin.formats"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# From the source tree, so that no collectstatic step is needed after a clone.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
# Static files are small, so Django may read them whole under ASGI.
warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")

# Proxies in front, each of which adds an address to X-Forwarded-For.
SVC_PROXIES = env.whole("SVC_PROXIES")
SVC_HTTPS_ONLY = env.flag("SVC_HTTPS_ONLY")
# The prefix makes browsers refuse the cookie from another host or without TLS (RFC 6265bis).
_COOKIE_PREFIX = "__Host-" if SVC_HTTPS_ONLY else ""
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}sessionid"
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}csrftoken"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SVC_HTTPS_ONLY
SESSION_COOKIE_AGE = int(env.number("SVC_SESSION_HOURS", least=0.1, most=8760) * 3600)
# In the session, so that no further cookie needs protection.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SECURE_SSL_REDIRECT = SVC_HTTPS_ONLY
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SVC_HTTPS_ONLY else None
SECURE_HSTS_SECONDS = 31_536_000 if SVC_HTTPS_ONLY else 0
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]  # the owner of the domain decides
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440
# No form here has a file; the gate holds every body in memory (svc_project.gate.gate).
FILE_UPLOAD_HANDLERS: list[str] = []
FILE_UPLOAD_MAX_MEMORY_SIZE = DATA_UPLOAD_MAX_MEMORY_SIZE

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["core.api.rendering.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": [],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "EXCEPTION_HANDLER": "core.api.views.render_exception",
    "UNAUTHENTICATED_USER": None,
}

# Identity of this gateway in the catalog (`owned_by`): the contract's brand name.
SVC_BRAND = "svc"

# Keys: how long a key may be used while the database is away (see docs/explain/keys.md).
SVC_KEY_OUTAGE_SECONDS = env.number("SVC_KEY_OUTAGE_SECONDS")
# The most working keys of each organization.
SVC_KEYS_PER_ORGANIZATION = env.whole("SVC_KEYS_PER_ORGANIZATION", least=1)
# The most keys that each organization may make in 24 hours, rotated ones included.
SVC_NEW_KEYS_PER_DAY = env.whole("SVC_NEW_KEYS_PER_DAY", least=1)
# How often every worker checks whether an operator changed the catalog or a key.
SVC_CHANGE_POLL_SECONDS = 0.25

# Limits that a new organization starts with; "unlimited" for none.
SVC_REQUESTS_PER_MINUTE = env.limit("SVC_REQUESTS_PER_MINUTE")
SVC_TOKENS_PER_MINUTE = env.limit("SVC_TOKENS_PER_MINUTE", 10**15)
SVC_SPEECH_REQUESTS_PER_MINUTE = env.limit("SVC_SPEECH_REQUESTS_PER_MINUTE")
SVC_SPEECH_CHARACTERS_PER_DAY = env.limit("SVC_SPEECH_CHARACTERS_PER_DAY", 10**15)

# The part of each of the bounds of a worker that one organization may hold.
SVC_ORGANIZATION_SHARE = env.number("SVC_ORGANIZATION_SHARE", least=0.001, most=1.0)

# The same limit for every organization, new or not.
SVC_CLONES_PER_HOUR = env.limit("SVC_CLONES_PER_HOUR")
# The least limit; an organization with a larger limit of requests may have as many refused.
SVC_REFUSED_REQUESTS_PER_MINUTE = env.limit("SVC_REFUSED_REQUESTS_PER_MINUTE")

# Backends: timeouts in seconds, the queue in front of a full backend, and allowed addresses.
SVC_BACKEND_CONNECT_SECONDS = env.number("SVC_BACKEND_CONNECT_SECONDS", least=0.001)
SVC_BACKEND_FIRST_BYTE_SECONDS = env.number("SVC_BACKEND_FIRST_BYTE_SECONDS", least=0.001)
SVC_BACKEND_IDLE_SECONDS = env.number("SVC_BACKEND_IDLE_SECONDS", least=0.001)
SVC_BACKEND_TOTAL_SECONDS = env.number("SVC_BACKEND_TOTAL_SECONDS", least=0.001)
# Only operators name backends, and model servers usually stand in a private network: true.
SVC_BACKEND_PRIVATE_ADDRESSES = env.flag("SVC_BACKEND_PRIVATE_ADDRESSES")
# Variables that may hold backends' keys, besides those that begin with SVC_BACKEND_KEY_.
SVC_BACKEND_KEY_VARIABLES: list[str] = env.list("SVC_BACKEND_KEY_VARIABLES")
# The timeout in seconds after which every worker keeps its own limits.
SVC_LIMIT_STORE_SECONDS = 0.25
SVC_BACKEND_QUEUE_SECONDS = env.number("SVC_BACKEND_QUEUE_SECONDS")
SVC_BACKEND_QUEUE_LENGTH = env.whole("SVC_BACKEND_QUEUE_LENGTH")
# The part of a backend's slots that an organization with many of its own leaves to the others.
SVC_BACKEND_RESERVED_SHARE = 0.125 if SVC_ORGANIZATION_SHARE < 1 else 0.0
# Speech backends: the timeout of the first sound (and of each later read), and of one utterance.
SVC_SPEECH_FIRST_BYTE_SECONDS = env.number("SVC_SPEECH_FIRST_BYTE_SECONDS", least=0.001)
SVC_SPEECH_TOTAL_SECONDS = env.number("SVC_SPEECH_TOTAL_SECONDS", least=0.001)
# When a backend that keeps failing is ejected, and how it returns (docs/explain/backends.md).
SVC_BACKEND_EJECT_AFTER = env.whole("SVC_BACKEND_EJECT_AFTER")
SVC_BACKEND_EJECT_SECONDS = 5.0
SVC_BACKEND_CHECK_SECONDS = env.number("SVC_BACKEND_CHECK_SECONDS")
SVC_POISON_DEATHS = 2
SVC_POISON_SECONDS = 300.0
# How long the rest of an answer is read for the meter after its client disconnected.
SVC_DISCONNECT_DRAIN_SECONDS = env.number("SVC_DISCONNECT_DRAIN_SECONDS")

# Speech: the embedded engine's processes, and the timeouts of clients, in seconds.
SVC_SPEECH_WORKERS = env.whole("SVC_SPEECH_WORKERS", least=1, most=1024)
# The neural engine: where its files are, its processes, and the threads of each. Two workers of
# `serve` have an engine each, so they share the cores.
SVC_NEURAL_DIR = env.path("SVC_NEURAL_DIR", Path(sys.prefix) / "share" / "svc-neural")
SVC_NEURAL_WORKERS = env.whole("SVC_NEURAL_WORKERS", least=1, most=1024)
_threads = max(1, min(4, (os.cpu_count() or 1) // SVC_WORKERS))
SVC_NEURAL_THREADS = env.whole("SVC_NEURAL_THREADS", least=1, most=1024, default=_threads)
SVC_SPEECH_START_SECONDS = 10.0
SVC_SPEECH_IDLE_SECONDS = env.number("SVC_SPEECH_IDLE_SECONDS", least=0.001)
SVC_SPEECH_SESSION_SECONDS = env.number("SVC_SPEECH_SESSION_SECONDS")
SVC_SPEECH_MESSAGES_PER_SECOND = env.number("SVC_SPEECH_MESSAGES_PER_SECOND")

# Serving.
SVC_MAX_INFLIGHT = env.whole("SVC_MAX_INFLIGHT", least=1)
SVC_MAX_ARRIVING = SVC_MAX_INFLIGHT
SVC_MAX_LINGERING = max(1, SVC_MAX_INFLIGHT // 5)
SVC_MAX_UNSTARTED_SESSIONS = max(1, SVC_MAX_INFLIGHT // 2)
SVC_MAX_SPEECH_SESSIONS = env.whole("SVC_MAX_SPEECH_SESSIONS", least=1)
SVC_MAX_CLONE_CREATIONS = 128
# Pages with live requests, in each worker.
SVC_MAX_WATCHERS = max(1, SVC_MAX_INFLIGHT // 20)
SVC_MAX_CONNECTIONS = env.whole("SVC_MAX_CONNECTIONS", least=1)
SVC_MEMORY_BYTES = env.whole("SVC_MEMORY_BYTES", least=5)
SVC_MAX_BODY_BYTES_INFLIGHT = SVC_MEMORY_BYTES // 5
SVC_MAX_SOUND_BYTES = SVC_MEMORY_BYTES - SVC_MAX_BODY_BYTES_INFLIGHT
SVC_CLIENT_SECONDS = env.number("SVC_CLIENT_SECONDS", least=0.001)
# Three timers of one client, so that a test can shorten one of them.
SVC_HEAD_SECONDS = SVC_BODY_SECONDS = SVC_CLIENT_STALL_SECONDS = SVC_CLIENT_SECONDS
# Views in each worker: threads (each with at most one database connection), and the queue in front.
SVC_DJANGO_THREADS = env.whole("SVC_DJANGO_THREADS", least=2, most=1024)  # one is for strangers
SVC_DJANGO_QUEUE_LENGTH = 256
SVC_DJANGO_QUEUE_SECONDS = 5.0
# The longest statement of a view, on PostgreSQL; 0: as the database sets it.
SVC_VIEW_STATEMENT_SECONDS = env.number("SVC_VIEW_STATEMENT_SECONDS", most=1e6)
SVC_WEBSOCKET_PING_SECONDS = 20.0
SVC_DRAIN_DELAY_SECONDS = env.number("SVC_DRAIN_DELAY_SECONDS")
SVC_DRAIN_SECONDS = env.number("SVC_DRAIN_SECONDS")

# How long a worker's event loop may be blocked before the parent replaces it; 0: for ever.
# A worker of a busy host that works may be late with its heartbeats, which come twice a second.
SVC_WORKER_BLOCKED_SECONDS = env.number("SVC_WORKER_BLOCKED_SECONDS", least=5, or_zero=True)

# The bearer token that reads GET /metrics; empty: only this host may.
SVC_METRICS_TOKEN = env.bearer("SVC_METRICS_TOKEN")
# What the parent of the workers gives each: its number, how often it was replaced, the name of this start or
# reload, and the socket of the page process. Without one views run in this process.
SVC_WORKER, SVC_WORKER_RESTARTS = map(env.given_by_svc, ("SVC_WORKER", "SVC_WORKER_RESTARTS"))
SVC_GENERATION = os.environ.get("SVC_GENERATION", "")
SVC_PAGE_SOCKET = os.environ.get("SVC_PAGE_SOCKET", "") if SVC_WORKERS > 1 else ""

# Metering.
SVC_SAMPLED_FRACTION = env.number("SVC_SAMPLED_FRACTION", most=1.0)
# The largest difference at which counts match: a part of the reported count, and tokens at least.
SVC_RECONCILIATION_TOLERANCE = {"chat": 0.05, "tools": 0.4, "json_object": 0.2, "json_schema": 0.2}
SVC_RECONCILIATION_FLOOR_TOKENS = {"chat": 32, "tools": 256, "json_object": 128, "json_schema": 128}
# Whether amounts are charged to anybody; the summary says so, nothing else depends on it.
SVC_BILLING_ENABLED = env.flag("SVC_BILLING_ENABLED")
SVC_DEFAULT_CURRENCY = env.currency("SVC_DEFAULT_CURRENCY")
# The timeout in seconds of the database after which a row goes to the journal.
SVC_LEDGER_ANSWER_SECONDS = 0.25
# Whether a request is dispatched only when its admission is committed in the database, and how
# long a process must be silent until others close its requests.
SVC_DURABLE_ADMISSIONS = env.flag("SVC_DURABLE_ADMISSIONS")
SVC_ADMISSION_LEASE_SECONDS = env.number("SVC_ADMISSION_LEASE_SECONDS", least=1)
SVC_JOURNAL_MAX_BYTES = env.whole("SVC_JOURNAL_MAX_BYTES", least=1024 * 1024, or_zero=True)
# CSV downloads: how many at once, in all workers together and of one organization; how long one
# may take in all, and the slowest pace of a reader.
SVC_EXPORT_DOWNLOADS = env.whole("SVC_EXPORT_DOWNLOADS", least=1)
SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION = max(1, SVC_EXPORT_DOWNLOADS // 2)
SVC_EXPORT_SECONDS = 3600.0
SVC_EXPORT_BYTES_PER_SECOND = 65_536.0
SVC_THROTTLE_COUNTERS = env.flag("SVC_THROTTLE_COUNTERS")
SVC_THROTTLE_FLUSH_SECONDS = 2.0

# Diagnostic capture; the contract asks for at least 24 hours.
SVC_CAPTURE_HOURS = env.number("SVC_CAPTURE_HOURS", least=24.0, most=87_600)

# Bounds for an organization: bytes of either side of a request, requests an hour, and in all.
SVC_CAPTURE_BYTES = 1_000_000
SVC_CAPTURES_PER_HOUR = 20
SVC_CAPTURE_BYTES_PER_ORGANIZATION = 67_108_864

# Mail, for people who forgot their password; without an address none is sent.
EMAIL_URL = env.address("EMAIL_URL", tuple(env.EMAIL_SCHEMES))
SVC_SENDS_MAIL = bool(EMAIL_URL)
globals().update(env.email_url_config(EMAIL_URL or "dummymail://"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.sender("SVC_EMAIL_FROM")
# Seconds for which a link that sets a password works.
PASSWORD_RESET_TIMEOUT = 24 * 3600

# A line of JSON for each request on standard output.
SVC_REQUEST_LOG = env.flag("SVC_REQUEST_LOG")
LOG_LEVEL = env.one_of("LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": "core.monitoring.logs.RequestFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
        },
    },
    "filters": {
        "ours": {"()": "core.monitoring.logs.DropClientFaults"},
        "few": {"()": "core.monitoring.logs.LimitRepeatedLines"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["few"]},
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # Its lines quote paths of refused requests, which a caller chooses.
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "daphne": {"level": "WARNING"},
        # At INFO it has a line for each message to a process that has just ended, several a second.
        "channels_redis": {"level": "WARNING"},
        # It logs every WebSocket with its query, and at DEBUG its frames.
        "uvicorn.error": {"level": "WARNING", "filters": ["ours"]},
    },
}

# None of them is ever a backend's key. Three are read only where the lists of their kind are not given.
SVC_OWN_VARIABLES = frozenset(
    operator_settings.SETTINGS.keys()
    | operator_settings.REMOVED.keys()
    | {"SVC_KEY_PEPPER", "SVC_CAPTURE_KEY", "SVC_CLONE_KEY"}
)
if own := [
    each for each in SVC_BACKEND_KEY_VARIABLES if variables.is_setting(each, SVC_OWN_VARIABLES)
]:
    raise ImproperlyConfigured(
        f"SVC_BACKEND_KEY_VARIABLES names settings of the gateway: {', '.join(own)}. An operator "
        "who changes backends could have them sent to any address. Take them out."
    )
refuse_unknown(
    {
        name: value
        for name, value in os.environ.items()
        if name not in ("SVC_WORKER", "SVC_WORKER_RESTARTS", "SVC_GENERATION", "SVC_PAGE_SOCKET")
    },
    SVC_OWN_VARIABLES - operator_settings.REMOVED.keys() | set(SVC_BACKEND_KEY_VARIABLES),
    variables.PREFIX,
    operator_settings.REMOVED,
)
