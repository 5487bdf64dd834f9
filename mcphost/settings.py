"""Django's settings, built from the environment and the data folder.

Every setting of operators is a field of `Environment` and a row in docs/reference.md. Code reads
`django.conf.settings` at the moment of use, so that tests can override it.
"""

import sys
import warnings
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from mcphost import home


class Environment(BaseSettings):
    """The settings of operators, each as `MCPHOST_<NAME>`; a few have their usual name instead."""

    model_config = SettingsConfigDict(env_prefix="MCPHOST_", extra="ignore")

    host: str = Field("127.0.0.1", validation_alias="HOST", min_length=1)
    port: int = Field(8000, validation_alias="PORT", gt=0, lt=65536)
    database_url: str = Field("", validation_alias="DATABASE_URL")
    redis_url: str = Field("", validation_alias="REDIS_URL", pattern=r"^((rediss?|unix)://.+)?$")
    allowed_hosts: str = "localhost,127.0.0.1,[::1]"
    trusted_origins: str = ""
    proxies: str = ""
    https: bool | None = None
    public_url: str = Field("", pattern=r"^(https?://[^/?#\s]+(/[^?#\s]*)?)?$")
    hsts_seconds: int = Field(0, ge=0)
    session_seconds: int = Field(12 * 3600, gt=0)
    egress_loopback_ports: str = Field("", pattern=r"^( *[1-9][0-9]{0,4} *(,|$))*$")
    conformance: bool = False
    expose_demo: bool = False
    tools_path: str = ""
    log_format: str = Field("console", pattern="^(console|json)$")
    log_level: str = Field("INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    notice_seconds: float = Field(5.0, ge=0)
    drain_seconds: float = Field(20.0, ge=0)
    keepalive_seconds: int = Field(75, gt=0)
    metrics_token: str = Field("", pattern=r"^([!-~]{16,})?$")
    body_limit: int = Field(4 * 1024 * 1024, gt=0)
    body_seconds: float = Field(30.0, gt=0)
    form_limit: int = Field(32 * 1024 * 1024, gt=0)
    django_requests: int = Field(8, gt=0)
    console_sockets: int = Field(1000, ge=0)
    console_sockets_per_user: int = Field(20, gt=0)
    processes: int = Field(1, gt=0)
    key_rotation_seconds: float = Field(0.0, ge=0)
    header_seconds: float = Field(10.0, gt=0)
    page_size: int = Field(100, gt=0, le=1000)
    stream_after_seconds: float = Field(5.0, gt=0)
    comment_seconds: float = Field(10.0, gt=0)
    ping_seconds: float = Field(0.0, ge=0)
    unread_limit: int = Field(1024 * 1024, gt=0)
    tool_seconds: float = Field(60.0, gt=0)
    stateless_replies: int = Field(10, ge=4, le=100)
    answer_seconds: float = Field(1800.0, gt=0)
    max_answer_seconds: float = Field(86_400.0, gt=0)
    client_session_seconds: float = Field(86_400.0, gt=0)
    client_session_max_seconds: float = Field(604_800.0, gt=0)
    threads_per_tenant: int = Field(8, gt=0)
    result_limit: int = Field(8 * 1024 * 1024, gt=0)
    listen_uris: int = Field(100, gt=0)
    listeners: int = Field(20_000, gt=0)
    listeners_per_tenant: int = Field(10_000, gt=0)
    listeners_per_token: int = Field(100, gt=0)
    sessions_per_token: int = Field(1000, gt=0)
    session_changes_per_minute: int = Field(1200, gt=0)
    api_requests_per_minute: int = Field(1200, gt=0)
    streams_per_session: int = Field(8, gt=0)
    feed_seconds: float = Field(0.5, gt=0)
    database_wait_seconds: float = Field(15.0, ge=0)
    database_waiters: int = Field(1000, ge=0)
    store_keys: int = Field(1000, gt=0)
    user_store_keys: int = Field(100, gt=0)
    state_parts_per_tenant: int = Field(1000, ge=0)
    state_part_bytes_per_tenant: int = Field(64 * 1024 * 1024, ge=0)
    task_seconds: float = Field(86_400.0, gt=0)
    task_round_seconds: float = Field(900.0, gt=0)
    task_after_seconds: float = Field(3.0, gt=0)
    task_poll_seconds: float = Field(1.0, gt=0)
    shed_lag_seconds: float = Field(0.5, ge=0)
    shed_share_seconds: float = Field(5.0, ge=0)
    tasks_per_tenant: int = Field(10_000, gt=0)
    tasks_per_caller: int = Field(1000, gt=0)
    task_rounds: int = Field(64, gt=0)
    task_rounds_per_tenant: int = Field(32, gt=0)
    task_rounds_per_tool: int = Field(16, gt=0)
    task_engine: str | None = Field(None, pattern="^(embedded|procrastinate)$")
    task_worker_in_server: bool = True
    summaries_in_server: bool = True
    smtp_url: str = Field("", pattern=r"^((smtp|smtps|smtp\+tls)://[^/?#\s]+)?$")
    email_from: str = Field("", pattern=r"^([^@\s]+@[^@\s]+|[^@]+<[^@\s]+@[^@\s]+>)?$")

    @classmethod
    def variable(cls, name: str) -> str:
        """Return the environment variable that sets the field `name`."""
        alias = cls.model_fields[name].validation_alias
        return alias if isinstance(alias, str) else f"MCPHOST_{name.upper()}"

    def is_loopback(self) -> bool:
        """Return whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


def _environment() -> Environment:
    try:
        return Environment()
    except ValidationError as error:
        raise ImproperlyConfigured("; ".join(map(_complaint, error.errors()))) from None


def _complaint(error: ErrorDetails) -> str:
    name = str(error["loc"][0])
    variable = Environment.variable(name) if name in Environment.model_fields else name
    value = "not shown" if name in SECRETS else repr(error["input"])
    return f"{variable} is {value}: {error['msg']}"


def _listed(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _database(url: str, path: Path) -> dict[str, Any]:
    """Return the database's settings.

    Raises ImproperlyConfigured, without the URL, because it may contain a password.
    """
    if not url:
        return {"ENGINE": SQLITE, "NAME": str(path), **_SQLITE_WAYS}
    try:
        database: dict[str, Any] = {
            **dj_database_url.parse(url, conn_max_age=CONNECTION_SECONDS, conn_health_checks=True)
        }
    except ValueError:
        raise ImproperlyConfigured(
            "DATABASE_URL is invalid: it must look like postgres://user:password@host:5432/name"
        ) from None
    if database["ENGINE"] == SQLITE:
        return {**database, **_SQLITE_WAYS}
    if database["ENGINE"] != POSTGRESQL:
        raise ImproperlyConfigured("DATABASE_URL must name PostgreSQL or SQLite")
    database["OPTIONS"] = {**_POSTGRESQL_WAYS, **database.get("OPTIONS", {})}
    return database


def _channel_layer(url: str) -> dict[str, Any]:
    if not url:
        return {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    host = {"address": url, "socket_connect_timeout": 3, "socket_timeout": 5}
    return {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [host], "prefix": "mcphost"},
    }


class SmtpServer(NamedTuple):
    """A server that takes e-mail; without a host, none is sent."""

    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    scheme: str = ""


def _smtp(url: str, sender: str) -> SmtpServer:
    """Return the server that takes e-mail.

    Raises ImproperlyConfigured, without the URL, because it may contain a password.
    """
    if not url:
        return SmtpServer()
    if not sender:
        raise ImproperlyConfigured("MCPHOST_SMTP_URL needs MCPHOST_EMAIL_FROM, the sender")
    try:
        parts = urlsplit(url)
        port = parts.port or _SMTP_PORTS[parts.scheme]
    except ValueError:
        raise ImproperlyConfigured(
            "MCPHOST_SMTP_URL is invalid: it must look like smtp+tls://user:password@host:587"
        ) from None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return SmtpServer(parts.hostname or "", port, user, password, parts.scheme)


def _secret_key(data: home.Home) -> str:
    try:
        return home.read_secret_key(data)
    except home.HomeError as error:
        raise ImproperlyConfigured(str(error)) from None


def _future_secret_keys(data: home.Home) -> list[str]:
    try:
        return home.read_future_secret_keys(data)
    except home.HomeError as error:
        raise ImproperlyConfigured(str(error)) from None


# The values of these fields are not shown in error messages.
SECRETS = frozenset({"metrics_token", "redis_url", "smtp_url"})
SQLITE = "django.db.backends.sqlite3"
POSTGRESQL = "django.db.backends.postgresql"
PROCRASTINATE = "procrastinate"
_SMTP_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
CONNECTION_SECONDS = 60
"""How long the packages' own threads keep a connection: opening one costs more than most uses."""
_SQLITE_WAYS = {
    "CONN_MAX_AGE": CONNECTION_SECONDS,
    "OPTIONS": {
        "timeout": 20,
        # A deferred transaction that reads and then writes fails at once when another one writes.
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    },
}

# Limits the wait for a server that is unavailable, or that has vanished from the network.
_POSTGRESQL_WAYS = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}

BASE = Path(__file__).resolve().parent.parent
HOME = home.locate()
ENVIRONMENT = _environment()

DEBUG = False
SECRET_KEY = _secret_key(HOME)
SECRET_KEY_FALLBACKS = _future_secret_keys(HOME)
ALLOWED_HOSTS = _listed(ENVIRONMENT.allowed_hosts)

# Whether browsers use HTTPS. Set explicitly behind a proxy; by default true unless loopback.
MCPHOST_HTTPS = (
    ENVIRONMENT.https if ENVIRONMENT.https is not None else not ENVIRONMENT.is_loopback()
)
CSRF_TRUSTED_ORIGINS = _listed(ENVIRONMENT.trusted_origins)
CSRF_COOKIE_SECURE = MCPHOST_HTTPS
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
# Browsers share cookies between the ports of a host, so these names are specific to mcphost.
CSRF_COOKIE_NAME = "mcphost_csrf"
CSRF_FAILURE_VIEW = "mcphost.console.error_pages.csrf_failure"
SESSION_COOKIE_NAME = "mcphost_session"
SESSION_COOKIE_SECURE = MCPHOST_HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = ENVIRONMENT.session_seconds
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = ENVIRONMENT.hsts_seconds if MCPHOST_HTTPS else 0
X_FRAME_OPTIONS = "DENY"
# Redirecting to HTTPS is left to the proxy in front: only it sees how the browser connected.
SILENCED_SYSTEM_CHECKS = ["security.W008"]

MCPHOST_PUBLIC_URL = ENVIRONMENT.public_url.rstrip("/")
MCPHOST_HOST = ENVIRONMENT.host
MCPHOST_PORT = ENVIRONMENT.port
MCPHOST_LOOPBACK = ENVIRONMENT.is_loopback()
MCPHOST_EGRESS_LOOPBACK_PORTS = frozenset(map(int, _listed(ENVIRONMENT.egress_loopback_ports)))
MCPHOST_CONFORMANCE = ENVIRONMENT.conformance
# What the official conformance suite expects of a server lies with the tests, in a checkout.
MCPHOST_CONFORMANCE_TOOLS = BASE / "tests" / "conformance" / "tools"
MCPHOST_EXPOSE_DEMO = ENVIRONMENT.expose_demo
MCPHOST_PROXIES = ENVIRONMENT.proxies
MCPHOST_HOME = HOME.path
# Functions that read at each call: the settings themselves never contain the key.
MCPHOST_MASTER_KEY = partial(home.read_master_key, HOME)
MCPHOST_NEW_MASTER_KEY = partial(home.read_new_master_key, HOME)
# Likewise checked at each call.
MCPHOST_EXPOSED = partial(home.exposed, HOME)
MCPHOST_TOOLS = Path(ENVIRONMENT.tools_path or BASE / "tools")
MCPHOST_LOG_FORMAT = ENVIRONMENT.log_format
MCPHOST_LOG_LEVEL = ENVIRONMENT.log_level
MCPHOST_NOTICE_SECONDS = ENVIRONMENT.notice_seconds
MCPHOST_DRAIN_SECONDS = ENVIRONMENT.drain_seconds
MCPHOST_KEEPALIVE_SECONDS = ENVIRONMENT.keepalive_seconds
MCPHOST_METRICS_TOKEN = ENVIRONMENT.metrics_token
MCPHOST_BODY_LIMIT = ENVIRONMENT.body_limit
MCPHOST_BODY_SECONDS = ENVIRONMENT.body_seconds
MCPHOST_FORM_LIMIT = ENVIRONMENT.form_limit
MCPHOST_DJANGO_REQUESTS = ENVIRONMENT.django_requests
MCPHOST_CONSOLE_SOCKETS = ENVIRONMENT.console_sockets
MCPHOST_CONSOLE_SOCKETS_PER_USER = ENVIRONMENT.console_sockets_per_user
MCPHOST_PROCESSES = ENVIRONMENT.processes
MCPHOST_KEY_ROTATION_SECONDS = ENVIRONMENT.key_rotation_seconds
MCPHOST_HEADER_SECONDS = ENVIRONMENT.header_seconds
MCPHOST_PAGE_SIZE = ENVIRONMENT.page_size
MCPHOST_STREAM_AFTER_SECONDS = ENVIRONMENT.stream_after_seconds
MCPHOST_COMMENT_SECONDS = ENVIRONMENT.comment_seconds
MCPHOST_PING_SECONDS = ENVIRONMENT.ping_seconds
MCPHOST_UNREAD_LIMIT = ENVIRONMENT.unread_limit
MCPHOST_TOOL_SECONDS = ENVIRONMENT.tool_seconds
MCPHOST_STATELESS_REPLIES = ENVIRONMENT.stateless_replies
MCPHOST_ANSWER_SECONDS = ENVIRONMENT.answer_seconds
MCPHOST_MAX_ANSWER_SECONDS = ENVIRONMENT.max_answer_seconds
MCPHOST_CLIENT_SESSION_SECONDS = ENVIRONMENT.client_session_seconds
MCPHOST_CLIENT_SESSION_MAX_SECONDS = ENVIRONMENT.client_session_max_seconds
MCPHOST_THREADS_PER_TENANT = ENVIRONMENT.threads_per_tenant
MCPHOST_RESULT_LIMIT = ENVIRONMENT.result_limit
MCPHOST_LISTEN_URIS = ENVIRONMENT.listen_uris
MCPHOST_LISTENERS = ENVIRONMENT.listeners
MCPHOST_LISTENERS_PER_TENANT = ENVIRONMENT.listeners_per_tenant
MCPHOST_LISTENERS_PER_TOKEN = ENVIRONMENT.listeners_per_token
MCPHOST_SESSIONS_PER_TOKEN = ENVIRONMENT.sessions_per_token
MCPHOST_SESSION_CHANGES_PER_MINUTE = ENVIRONMENT.session_changes_per_minute
MCPHOST_API_REQUESTS_PER_MINUTE = ENVIRONMENT.api_requests_per_minute
MCPHOST_STREAMS_PER_SESSION = ENVIRONMENT.streams_per_session
MCPHOST_FEED_SECONDS = ENVIRONMENT.feed_seconds
MCPHOST_DATABASE_WAIT_SECONDS = ENVIRONMENT.database_wait_seconds
MCPHOST_DATABASE_WAITERS = ENVIRONMENT.database_waiters
MCPHOST_STORE_KEYS = ENVIRONMENT.store_keys
MCPHOST_USER_STORE_KEYS = ENVIRONMENT.user_store_keys
MCPHOST_STATE_PARTS_PER_TENANT = ENVIRONMENT.state_parts_per_tenant
MCPHOST_STATE_PART_BYTES_PER_TENANT = ENVIRONMENT.state_part_bytes_per_tenant
MCPHOST_TASK_SECONDS = ENVIRONMENT.task_seconds
MCPHOST_TASK_ROUND_SECONDS = ENVIRONMENT.task_round_seconds
MCPHOST_TASK_AFTER_SECONDS = ENVIRONMENT.task_after_seconds
MCPHOST_TASK_POLL_SECONDS = ENVIRONMENT.task_poll_seconds
MCPHOST_SHED_LAG_SECONDS = ENVIRONMENT.shed_lag_seconds
MCPHOST_SHED_SHARE_SECONDS = ENVIRONMENT.shed_share_seconds
MCPHOST_TASKS_PER_TENANT = ENVIRONMENT.tasks_per_tenant
MCPHOST_TASKS_PER_CALLER = ENVIRONMENT.tasks_per_caller
MCPHOST_TASK_ROUNDS = ENVIRONMENT.task_rounds
MCPHOST_TASK_ROUNDS_PER_TENANT = ENVIRONMENT.task_rounds_per_tenant
MCPHOST_TASK_ROUNDS_PER_TOOL = ENVIRONMENT.task_rounds_per_tool
MCPHOST_TASK_WORKER_IN_SERVER = ENVIRONMENT.task_worker_in_server
MCPHOST_SUMMARIES_IN_SERVER = ENVIRONMENT.summaries_in_server

# Without a server for e-mail, links to accounts are only shown.
SMTP = _smtp(ENVIRONMENT.smtp_url, ENVIRONMENT.email_from)
MCPHOST_SENDS_EMAIL = bool(SMTP.host)
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if SMTP.host else 'dummy'}.EmailBackend"
EMAIL_HOST, EMAIL_PORT = SMTP.host, SMTP.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = SMTP.user, SMTP.password
EMAIL_USE_TLS, EMAIL_USE_SSL = SMTP.scheme == "smtp+tls", SMTP.scheme == "smtps"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = ENVIRONMENT.email_from

INSTALLED_APPS = [
    # Its app replaces `runserver`, and imports its server, which takes a tenth of the time to start.
    *(["daphne"] if "runserver" in sys.argv[1:2] else []),
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "channels",
    "rest_framework",
    "mcphost",
    "mcphost.feed",
    "mcphost.audit",
    "mcphost.tenants",
    "mcphost.vault",
    "mcphost.calls",
    "mcphost.tasks",
    "mcphost.identity",
    "mcphost.catalogue",
    "mcphost.serving",
    "mcphost.transport",
    "mcphost.console",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "mcphost.console.middleware.SecurityHeadersMiddleware",
    "mcphost.console.compression.PageCompressionMiddleware",
    "mcphost.console.invisible_characters.UnseenMiddleware",
    "mcphost.console.static_files.StaticFilesMiddleware",
    "mcphost.console.unavailable.DatabaseAwayMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "mcphost.urls"
# The sign-in page, and the page after a sign-in that names no valid next page.
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
ASGI_APPLICATION = "mcphost.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# CONN_MAX_AGE is for the packages' own threads, which keep their connections. Those of Django's
# requests are closed at the end of each request, in the thread that used them:
# mcphost.transport.django_requests.
DATABASES = {"default": _database(ENVIRONMENT.database_url, HOME.database)}
# With SQLite, one process serves. Commands may run beside it and change data, but serve nothing.
MCPHOST_ALONE = DATABASES["default"]["ENGINE"] == SQLITE
MCPHOST_TASK_ENGINE = ENVIRONMENT.task_engine or ("embedded" if MCPHOST_ALONE else PROCRASTINATE)
if MCPHOST_TASK_ENGINE == PROCRASTINATE:
    if MCPHOST_ALONE:
        raise ImproperlyConfigured(
            "MCPHOST_TASK_ENGINE is 'procrastinate', which needs PostgreSQL (DATABASE_URL)"
        )
    # Its tables, and nothing else: mcphost.tasks.jobs has the jobs.
    INSTALLED_APPS.append("procrastinate.contrib.django")
PROCRASTINATE_AUTODISCOVER_MODULE_NAME = ""
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
MCPHOST_REDIS = bool(ENVIRONMENT.redis_url)
CHANNEL_LAYERS = {"default": _channel_layer(ENVIRONMENT.redis_url)}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Programs choose nothing by the address, and a request without a credential has no user.
REST_FRAMEWORK = {"URL_FORMAT_OVERRIDE": None, "UNAUTHENTICATED_USER": None}

# Set up by mcphost.observability.logs when a server or a command starts.
LOGGING_CONFIG = None

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE / "static"]
# Static files are served from their source folders, without `collectstatic`. What CSS names, such as
# fonts, has no version in its URL, so it is cached for an hour only.
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 3600
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "mcphost.console.static_files.VersionedStorage"},
}
# Static files are small. That they are read by blocking is a warning that operators cannot act on.
warnings.filterwarnings(
    "ignore", message="StreamingHttpResponse must consume synchronous iterators"
)
