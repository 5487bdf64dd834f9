"""Django's settings, built from the environment and the data folder.

Everything an operator may set is a field of `Environment` and a row in docs/reference.md. Code
reads `django.conf.settings` at the moment of use, so that tests can override it.
"""

from functools import partial
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from mcphost import home


class Environment(BaseSettings):
    """What operators set, each as `MCPHOST_<NAME>` (two names that the field knows keep their own)."""

    model_config = SettingsConfigDict(env_prefix="MCPHOST_", extra="ignore")

    database_url: str = Field("", validation_alias="DATABASE_URL")
    allowed_hosts: str = "localhost,127.0.0.1,[::1]"
    tools_path: str = ""
    log_format: str = Field("console", pattern="^(console|json)$")
    log_level: str = Field("INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    body_limit: int = Field(4 * 1024 * 1024, gt=0)
    body_seconds: float = Field(30.0, gt=0)
    header_seconds: float = Field(10.0, gt=0)
    page_size: int = Field(100, gt=0, le=1000)
    stream_after_seconds: float = Field(5.0, gt=0)
    comment_seconds: float = Field(10.0, gt=0)
    unread_limit: int = Field(1024 * 1024, gt=0)
    tool_seconds: float = Field(60.0, gt=0)
    threads_per_tenant: int = Field(8, gt=0)
    result_limit: int = Field(8 * 1024 * 1024, gt=0)
    feed_seconds: float = Field(0.5, gt=0)


def _environment() -> Environment:
    try:
        return Environment()  # type: ignore[call-arg]  # fields come from the environment
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise ImproperlyConfigured("; ".join(lines)) from None


def _database(url: str, path: Path) -> dict[str, Any]:
    if url:
        return {**dj_database_url.parse(url, conn_max_age=None, conn_health_checks=True)}
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        },
    }


def _secret_key(data: home.Home) -> str:
    try:
        return home.read_secret_key(data)
    except home.HomeError as error:
        raise ImproperlyConfigured(str(error)) from None


BASE = Path(__file__).resolve().parent.parent
HOME = home.locate()
ENVIRONMENT = _environment()

DEBUG = False
SECRET_KEY = _secret_key(HOME)
ALLOWED_HOSTS = [host.strip() for host in ENVIRONMENT.allowed_hosts.split(",") if host.strip()]

MCPHOST_HOME = HOME.path
# Read at access, never kept: who holds the settings does not hold the key.
MCPHOST_MASTER_KEY = partial(home.read_master_key, HOME)
MCPHOST_TOOLS = Path(ENVIRONMENT.tools_path or BASE / "tools")
MCPHOST_LOG_FORMAT = ENVIRONMENT.log_format
MCPHOST_LOG_LEVEL = ENVIRONMENT.log_level
MCPHOST_BODY_LIMIT = ENVIRONMENT.body_limit
MCPHOST_BODY_SECONDS = ENVIRONMENT.body_seconds
MCPHOST_HEADER_SECONDS = ENVIRONMENT.header_seconds
MCPHOST_PAGE_SIZE = ENVIRONMENT.page_size
MCPHOST_STREAM_AFTER_SECONDS = ENVIRONMENT.stream_after_seconds
MCPHOST_COMMENT_SECONDS = ENVIRONMENT.comment_seconds
MCPHOST_UNREAD_LIMIT = ENVIRONMENT.unread_limit
MCPHOST_TOOL_SECONDS = ENVIRONMENT.tool_seconds
MCPHOST_THREADS_PER_TENANT = ENVIRONMENT.threads_per_tenant
MCPHOST_RESULT_LIMIT = ENVIRONMENT.result_limit
MCPHOST_FEED_SECONDS = ENVIRONMENT.feed_seconds

INSTALLED_APPS = [
    "daphne",
    "unfold",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "channels",
    "rest_framework",
    "mcphost.feed",
    "mcphost.audit",
    "mcphost.tenants",
    "mcphost.vault",
    "mcphost.identity",
    "mcphost.catalogue",
    "mcphost.serving",
    "mcphost.transport",
    "mcphost.console",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "mcphost.urls"
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

DATABASES = {"default": _database(ENVIRONMENT.database_url, HOME.database)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = HOME.path / "static"
STATICFILES_DIRS = [BASE / "static"]
WHITENOISE_USE_FINDERS = True
