"""All settings of the project, read from the environment.

Every name that an operator can set is described in docs/settings.md; a test compares the two.
A variable may also be given as ``NAME_FILE``, the path of a file that holds the value.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from svc_project.lib import variables
from svc_project.lib.database.address import described
from svc_project.lib.made_secrets import made_once

BASE_DIR = Path(__file__).resolve().parent.parent

env = variables.SettingsEnv()

VERSION = re.search(  # type: ignore[union-attr]  # the changelog always has a version heading
    r"^## \[(\d[^\]]*)\]", (BASE_DIR / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
).group(1)

DEBUG = env.bool("DEBUG", default=False)

SVC_DATA_DIR = Path(env.str("SVC_DATA_DIR", default=str(BASE_DIR / "var"))).absolute()
SVC_DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)


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
SVC_KEY_PEPPERS: list[str] = env.list("SVC_KEY_PEPPERS", default=[]) or [_secret("SVC_KEY_PEPPER")]
# The first key encrypts new captures; the others still decrypt older ones.
SVC_CAPTURE_KEYS: list[str] = env.list("SVC_CAPTURE_KEYS", default=[]) or [
    _secret("SVC_CAPTURE_KEY")
]
# The first key seals new reference clips of clones; the others still open older ones.
SVC_CLONE_KEYS: list[str] = env.list("SVC_CLONE_KEYS", default=[]) or [_secret("SVC_CLONE_KEY")]

ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
SPEECH_HOSTS: list[str] = [host.lower() for host in env.list("SPEECH_HOSTS", default=[])]
SVC_SPEECH_PORT = env.int("SVC_SPEECH_PORT", default=8001)
SVC_WORKERS = env.int("SVC_WORKERS", default=1)

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
        env.str("DATABASE_URL", default=f"sqlite:///{SVC_DATA_DIR / 'svc.sqlite3'}"),
        test_file=SVC_DATA_DIR / "test.sqlite3",
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL: str = env.str("REDIS_URL", default="")
CHANNEL_LAYERS = (
    {
        "default": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            # Its blocking reads take 5 s, which is also redis-py's own timeout: they would often fail.
            "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": 15.0}]},
        }
    }
    if REDIS_URL
    else {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
)

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
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
# Files are served from the source tree, so that no collectstatic step is needed after a clone.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
# Static files are small, so Django may read them whole under ASGI.
warnings.filterwarnings(
    "ignore", "StreamingHttpResponse must consume synchronous iterators", Warning
)

# Proxies in front, each of which adds an address to X-Forwarded-For.
SVC_PROXIES = env.int("SVC_PROXIES", default=0)
SVC_HTTPS_ONLY = env.bool("SVC_HTTPS_ONLY", default=False)
# The prefix makes browsers refuse the cookie from another host or without TLS (RFC 6265bis).
_COOKIE_PREFIX = "__Host-" if SVC_HTTPS_ONLY else ""
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}sessionid"
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}csrftoken"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SVC_HTTPS_ONLY
SESSION_COOKIE_AGE = int(env.float("SVC_SESSION_HOURS", default=12.0) * 3600)
# In the session, so that no further cookie needs protection.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SECURE_SSL_REDIRECT = SVC_HTTPS_ONLY
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SVC_HTTPS_ONLY else None
SECURE_HSTS_SECONDS = 31_536_000 if SVC_HTTPS_ONLY else 0
# The domain's owner decides about TLS on all subdomains and the browsers' preload list.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440
# No form here has a file; the gate holds every body in memory (svc_project.gate.gate).
FILE_UPLOAD_HANDLERS: list[str] = []
FILE_UPLOAD_MAX_MEMORY_SIZE = DATA_UPLOAD_MAX_MEMORY_SIZE

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["svc_project.lib.api.rendering.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": [],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "EXCEPTION_HANDLER": "svc_project.lib.api.views.render_exception",
    "UNAUTHENTICATED_USER": None,
}

# Identity of this gateway in the catalog (`owned_by`): the contract's brand name.
SVC_BRAND = "svc"

# Keys: how long a cached key may be used (see docs/explain/keys.md).
SVC_KEY_CACHE_SECONDS = env.float("SVC_KEY_CACHE_SECONDS", default=5.0)
SVC_KEY_OUTAGE_SECONDS = env.float("SVC_KEY_OUTAGE_SECONDS", default=900.0)
# The most working keys of each organization.
SVC_KEYS_PER_ORGANIZATION = env.int("SVC_KEYS_PER_ORGANIZATION", default=100)
# The most keys that each organization may make in 24 hours, rotated ones included.
SVC_NEW_KEYS_PER_DAY = env.int("SVC_NEW_KEYS_PER_DAY", default=300)
# How often every worker checks whether an operator changed the catalog or a key.
SVC_CHANGE_POLL_SECONDS = env.float("SVC_CHANGE_POLL_SECONDS", default=0.25)

# Limits that a new organization starts with; "unlimited" for none.
SVC_REQUESTS_PER_MINUTE = env.limit("SVC_REQUESTS_PER_MINUTE", "600")
SVC_TOKENS_PER_MINUTE = env.limit("SVC_TOKENS_PER_MINUTE", "1000000")
SVC_SPEECH_REQUESTS_PER_MINUTE = env.limit("SVC_SPEECH_REQUESTS_PER_MINUTE", "120")
SVC_SPEECH_CHARACTERS_PER_DAY = env.limit("SVC_SPEECH_CHARACTERS_PER_DAY", "200000")

# The same limit for every organization, new or not.
SVC_CLONES_PER_HOUR = env.limit("SVC_CLONES_PER_HOUR", "60")
# The least limit; an organization with a larger limit of requests may have as many refused.
SVC_REFUSED_REQUESTS_PER_MINUTE = env.limit("SVC_REFUSED_REQUESTS_PER_MINUTE", "60")

# Backends: timeouts in seconds, the queue in front of a full backend, and allowed addresses.
SVC_BACKEND_CONNECT_SECONDS = env.float("SVC_BACKEND_CONNECT_SECONDS", default=2.0)
SVC_BACKEND_FIRST_BYTE_SECONDS = env.float("SVC_BACKEND_FIRST_BYTE_SECONDS", default=60.0)
SVC_BACKEND_IDLE_SECONDS = env.float("SVC_BACKEND_IDLE_SECONDS", default=30.0)
SVC_BACKEND_TOTAL_SECONDS = env.float("SVC_BACKEND_TOTAL_SECONDS", default=600.0)
# Only operators name backends, and model servers usually stand in a private network: true.
SVC_BACKEND_PRIVATE_ADDRESSES = env.bool("SVC_BACKEND_PRIVATE_ADDRESSES", default=True)
# Variables that may hold backends' keys, besides those that begin with SVC_BACKEND_KEY_.
SVC_BACKEND_KEY_VARIABLES: list[str] = env.list("SVC_BACKEND_KEY_VARIABLES", default=[])
# The timeout in seconds after which every worker keeps its own limits.
SVC_LIMIT_STORE_SECONDS = env.float("SVC_LIMIT_STORE_SECONDS", default=0.05)
SVC_BACKEND_QUEUE_SECONDS = env.float("SVC_BACKEND_QUEUE_SECONDS", default=5.0)
SVC_BACKEND_QUEUE_LENGTH = env.int("SVC_BACKEND_QUEUE_LENGTH", default=64)
# The part of a backend's slots that an organization with many of its own leaves to the others.
SVC_BACKEND_RESERVED_SHARE = env.float("SVC_BACKEND_RESERVED_SHARE", default=0.125)
# Speech backends: the timeout of the first sound (and of each later read), and of one utterance.
SVC_SPEECH_FIRST_BYTE_SECONDS = env.float("SVC_SPEECH_FIRST_BYTE_SECONDS", default=10.0)
SVC_SPEECH_TOTAL_SECONDS = env.float("SVC_SPEECH_TOTAL_SECONDS", default=60.0)
# When a backend that keeps failing is ejected, and how it returns (docs/explain/backends.md).
SVC_BACKEND_EJECT_AFTER = env.int("SVC_BACKEND_EJECT_AFTER", default=5)
SVC_BACKEND_EJECT_SECONDS = env.float("SVC_BACKEND_EJECT_SECONDS", default=5.0)
SVC_BACKEND_CHECK_SECONDS = env.float("SVC_BACKEND_CHECK_SECONDS", default=0.0)
SVC_POISON_DEATHS = env.int("SVC_POISON_DEATHS", default=2)
SVC_POISON_SECONDS = env.float("SVC_POISON_SECONDS", default=300.0)
# How long the rest of an answer is read for the meter after its client disconnected.
SVC_DISCONNECT_DRAIN_SECONDS = env.float("SVC_DISCONNECT_DRAIN_SECONDS", default=30.0)

# Speech: the embedded engine's processes, and the timeouts of clients, in seconds.
SVC_SPEECH_WORKERS = env.int("SVC_SPEECH_WORKERS", default=2)
# The neural engine: where its files are, its processes, and the threads of each. Two workers of
# `serve` have an engine each, so they share the cores.
SVC_NEURAL_DIR = Path(
    env.str("SVC_NEURAL_DIR", default=str(Path(sys.prefix) / "share" / "svc-neural"))
)
SVC_NEURAL_WORKERS = env.int("SVC_NEURAL_WORKERS", default=1)
SVC_NEURAL_THREADS = env.int(
    "SVC_NEURAL_THREADS", default=max(1, min(4, (os.cpu_count() or 1) // SVC_WORKERS))
)
SVC_SPEECH_START_SECONDS = env.float("SVC_SPEECH_START_SECONDS", default=10.0)
SVC_SPEECH_IDLE_SECONDS = env.float("SVC_SPEECH_IDLE_SECONDS", default=30.0)
SVC_SPEECH_SESSION_SECONDS = env.float("SVC_SPEECH_SESSION_SECONDS", default=3600.0)
SVC_SPEECH_MESSAGES_PER_SECOND = env.float("SVC_SPEECH_MESSAGES_PER_SECOND", default=100.0)

# Serving.
SVC_MAX_INFLIGHT = env.int("SVC_MAX_INFLIGHT", default=2000)
SVC_MAX_ARRIVING = env.int("SVC_MAX_ARRIVING", default=2000)
SVC_MAX_LINGERING = env.int("SVC_MAX_LINGERING", default=400)
SVC_MAX_UNSTARTED_SESSIONS = env.int("SVC_MAX_UNSTARTED_SESSIONS", default=1000)
SVC_MAX_SPEECH_SESSIONS = env.int("SVC_MAX_SPEECH_SESSIONS", default=1000)
SVC_MAX_CLONE_CREATIONS = env.int("SVC_MAX_CLONE_CREATIONS", default=128)
# The part of each of these bounds, and of SVC_MAX_WATCHERS, that one organization may hold.
SVC_ORGANIZATION_SHARE = env.float("SVC_ORGANIZATION_SHARE", default=0.25)
# Pages with live requests, in each worker.
SVC_MAX_WATCHERS = env.int("SVC_MAX_WATCHERS", default=100)
SVC_MAX_CONNECTIONS = env.int("SVC_MAX_CONNECTIONS", default=10_000)
SVC_MAX_BODY_BYTES_INFLIGHT = env.int("SVC_MAX_BODY_BYTES_INFLIGHT", default=268_435_456)
SVC_MAX_SOUND_BYTES = env.int("SVC_MAX_SOUND_BYTES", default=1_073_741_824)
SVC_HEAD_SECONDS = env.float("SVC_HEAD_SECONDS", default=30.0)
SVC_BODY_SECONDS = env.float("SVC_BODY_SECONDS", default=30.0)
# Views in each worker: threads (each with at most one database connection), and the queue in front.
SVC_DJANGO_THREADS = env.int("SVC_DJANGO_THREADS", default=6)
SVC_DJANGO_QUEUE_LENGTH = env.int("SVC_DJANGO_QUEUE_LENGTH", default=256)
SVC_DJANGO_QUEUE_SECONDS = env.float("SVC_DJANGO_QUEUE_SECONDS", default=5.0)
# The longest statement of a view, on PostgreSQL; 0: as the database sets it.
SVC_VIEW_STATEMENT_SECONDS = env.float("SVC_VIEW_STATEMENT_SECONDS", default=30.0)
if SVC_DJANGO_THREADS < 2:
    raise ImproperlyConfigured("SVC_DJANGO_THREADS must be at least 2: one is for strangers.")
SVC_CLIENT_STALL_SECONDS = env.float("SVC_CLIENT_STALL_SECONDS", default=30.0)
SVC_WEBSOCKET_PING_SECONDS = env.float("SVC_WEBSOCKET_PING_SECONDS", default=20.0)
SVC_DRAIN_DELAY_SECONDS = env.float("SVC_DRAIN_DELAY_SECONDS", default=0.0)
SVC_DRAIN_SECONDS = env.float("SVC_DRAIN_SECONDS", default=30.0)

# How long a worker's event loop may hang before the parent replaces it; 0: for ever.
SVC_WORKER_SILENCE_SECONDS = env.float("SVC_WORKER_SILENCE_SECONDS", default=60.0)

# The bearer token that reads GET /metrics; empty: only this host may.
SVC_METRICS_TOKEN = env.str("SVC_METRICS_TOKEN", default="")
# This worker's number; the parent of the workers sets it.
SVC_WORKER = env.int("SVC_WORKER", default=0)
# The socket of the page process; the parent of the workers sets it. Empty: views run in this process.
SVC_PAGE_SOCKET = env.str("SVC_PAGE_SOCKET", default="")

# Metering.
SVC_SAMPLED_FRACTION = env.float("SVC_SAMPLED_FRACTION", default=0.01)
# The largest difference at which counts match: a part of the reported count, and tokens at least.
SVC_RECONCILIATION_TOLERANCE = env.by_shape(
    "SVC_RECONCILIATION_TOLERANCE", chat=0.05, tools=0.4, json_object=0.2, json_schema=0.2
)
SVC_RECONCILIATION_FLOOR_TOKENS = env.by_shape(
    "SVC_RECONCILIATION_FLOOR_TOKENS", chat=32, tools=256, json_object=128, json_schema=128
)
# Whether amounts are charged to anybody; the summary says so, nothing else depends on it.
SVC_BILLING_ENABLED = env.bool("SVC_BILLING_ENABLED", default=False)
SVC_DEFAULT_CURRENCY = env.str("SVC_DEFAULT_CURRENCY", default="USD")
SVC_LEDGER_ANSWER_SECONDS = env.float("SVC_LEDGER_ANSWER_SECONDS", default=0.25)
# Whether the ledger's transactions are on disk when they are answered, also where the database says
# synchronous_commit = off.
SVC_LEDGER_SYNCHRONOUS_COMMIT = env.bool("SVC_LEDGER_SYNCHRONOUS_COMMIT", default=True)
# Whether a request is dispatched only when its admission is committed in the database, and how
# long a process must be silent until others close its requests.
SVC_DURABLE_ADMISSIONS = env.bool("SVC_DURABLE_ADMISSIONS", default=False)
SVC_ADMISSION_LEASE_SECONDS = env.float("SVC_ADMISSION_LEASE_SECONDS", default=600.0)
SVC_JOURNAL_MAX_BYTES = env.int("SVC_JOURNAL_MAX_BYTES", default=1_073_741_824)
# CSV downloads: how many at once, in all workers together and of one organization; how long one
# may take in all, and the slowest pace of a reader.
SVC_EXPORT_DOWNLOADS = env.int("SVC_EXPORT_DOWNLOADS", default=8)
SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION = env.int("SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION", default=4)
SVC_EXPORT_SECONDS = env.float("SVC_EXPORT_SECONDS", default=3600.0)
SVC_EXPORT_BYTES_PER_SECOND = env.float("SVC_EXPORT_BYTES_PER_SECOND", default=65_536.0)
SVC_THROTTLE_COUNTERS = env.bool("SVC_THROTTLE_COUNTERS", default=True)
SVC_THROTTLE_FLUSH_SECONDS = env.float("SVC_THROTTLE_FLUSH_SECONDS", default=2.0)

# Diagnostic capture; the contract asks for at least 24 hours.
SVC_CAPTURE_HOURS = env.float("SVC_CAPTURE_HOURS", default=72.0)
if SVC_CAPTURE_HOURS < 24:
    raise ImproperlyConfigured(
        "SVC_CAPTURE_HOURS must be at least 24 (inference contract, Limits)."
    )

# Bounds for an organization: bytes of either side of a request, requests an hour, and in all.
SVC_CAPTURE_BYTES = env.int("SVC_CAPTURE_BYTES", default=1_000_000)
SVC_CAPTURES_PER_HOUR = env.int("SVC_CAPTURES_PER_HOUR", default=20)
SVC_CAPTURE_BYTES_PER_ORGANIZATION = env.int(
    "SVC_CAPTURE_BYTES_PER_ORGANIZATION", default=67_108_864
)

# Mail, for people who forgot their password; without an address none is sent.
EMAIL_URL = env.str("EMAIL_URL", default="")
SVC_SENDS_MAIL = bool(EMAIL_URL)
globals().update(env.email_url_config(EMAIL_URL or "dummymail://"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("SVC_EMAIL_FROM", default="svc@localhost")
# Seconds for which a link that sets a password works.
PASSWORD_RESET_TIMEOUT = 24 * 3600

LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
    },
    "filters": {
        "ours": {"()": "svc_project.lib.monitoring.logs.DropClientFaults"},
        "few": {"()": "svc_project.lib.monitoring.logs.LimitRepeatedLines"},
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
        # It logs every WebSocket with its query, and at DEBUG its frames.
        "uvicorn.error": {"level": "WARNING", "filters": ["ours"]},
    },
}

# All variables that this module reads: none of them is ever a backend's key.
SVC_OWN_VARIABLES = frozenset(env.names)
if own := [
    each for each in SVC_BACKEND_KEY_VARIABLES if variables.is_setting(each, SVC_OWN_VARIABLES)
]:
    raise ImproperlyConfigured(
        f"SVC_BACKEND_KEY_VARIABLES names settings of the gateway: {', '.join(own)}. An operator "
        "who changes backends could have them sent to any address. Take them out."
    )
